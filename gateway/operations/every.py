"""All operations: the public API `/api/v1` and `/metrics`, the internal API `/api`, the dashboard and the documents."""

from gateway.operations import (
    access_list,
    agents,
    alerts,
    audit,
    budgets,
    detectors,
    edges,
    event_outputs,
    fleet,
    harmless,
    incidents,
    keys,
    providers,
    reports,
    risk_acceptances,
    self_checks,
    settings,
    shield,
    traffic,
    users,
)
from gateway.operations.operation import Operation

_INTERNAL = (
    *(
        users,
        keys,
        access_list,
        providers,
        detectors,
        budgets,
        risk_acceptances,
        self_checks,
        audit,
        reports,
        event_outputs,
    ),
    *(settings, alerts, harmless, incidents, agents, traffic, fleet, shield, edges),
)
_PUBLIC = (edges, shield, agents, fleet, alerts, audit, self_checks, risk_acceptances)

INTERNAL_OPERATIONS: tuple[Operation, ...] = tuple(row for module in _INTERNAL for row in module.OPERATIONS)
PUBLIC_OPERATIONS: tuple[Operation, ...] = tuple(row for module in _PUBLIC for row in module.PUBLIC_OPERATIONS)
DESCRIBED_OPERATIONS = PUBLIC_OPERATIONS + INTERNAL_OPERATIONS
ALL_OPERATIONS = DESCRIBED_OPERATIONS + edges.PAGE_OPERATIONS + edges.MANUAL_OPERATIONS
