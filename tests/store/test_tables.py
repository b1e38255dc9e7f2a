"""Every record that a repository writes is the record that it reads back, whatever the types of its fields."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from enum import Enum
from importlib import import_module
from pkgutil import iter_modules
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from seeding import seed

import gateway.store
from gateway.domain.access_list import AccessEntry
from gateway.domain.agents import AgentRecord
from gateway.domain.alerts import Alert
from gateway.domain.audit import GENESIS_HASH, AuditEvent, Checkpoint
from gateway.domain.budgets import Budget, Hold
from gateway.domain.detectors import Detector
from gateway.domain.event_outputs import EventOutput
from gateway.domain.fleet import Heartbeat, Peer
from gateway.domain.keys import KeyRecord
from gateway.domain.local_rules import LocalRule
from gateway.domain.policies import KeptText, PolicyRecord, RuleOverride
from gateway.domain.posture import PosturePoint, TrustAudit
from gateway.domain.principals import Role
from gateway.domain.providers import Provider
from gateway.domain.reports import Report, ReportSchedule
from gateway.domain.risk_acceptances import RiskAcceptance
from gateway.domain.security_scans import SecurityScan
from gateway.domain.traffic import TrafficRow
from gateway.domain.users import Session, User
from gateway.store.budgets import HOLDS
from gateway.store.sessions import SignInOrigin
from gateway.store.store import Store
from gateway.store.table import TableReader

Write = Callable[[Store, Any, Any], object]
Read = Callable[[Store, Any, Any], object]

USER = User("usr_1", "ann", "hash", Role.ADMIN, 1, None)


def keep_text(store: Store, tx: Any, one: KeptText) -> None:
    store.captures.add(tx, TrafficRow("trf_1", 1, "req_1", "op", "key_1", "ALLOW", 0), one)


# How each record is written and read. The last entry has the fields that the database decides upon.
ROWS: Mapping[type, tuple[Write, Read, Mapping[str, object]]] = {
    AccessEntry: (lambda s, tx, one: s.access_list.insert(tx, one), lambda s, tx, one: s.access_list.by_id(tx, one.id), {}),
    AgentRecord: (lambda s, tx, one: s.agents.insert(tx, one), lambda s, tx, one: s.agents.by_id(tx, one.id), {}),
    Alert: (lambda s, tx, one: s.alerts.insert(tx, one), lambda s, tx, one: s.alerts.by_id(tx, one.id), {}),
    AuditEvent: (
        lambda s, tx, one: s.audit.append(tx, one),
        lambda s, tx, one: replace(s.audit.chain(tx, one.instance_id, after_seq=0, limit=1)[0], hash=""),
        {"seq": 1, "prev_hash": GENESIS_HASH, "hash": ""},
    ),
    Budget: (lambda s, tx, one: s.budgets.insert(tx, one), lambda s, tx, one: s.budgets.by_id(tx, one.id), {"lineage": None}),
    Checkpoint: (
        lambda s, tx, one: s.checkpoints.insert(tx, one),
        lambda s, tx, one: s.checkpoints.newest(tx, one.instance_id, limit=1)[0],
        {},
    ),
    Detector: (lambda s, tx, one: s.detectors.insert(tx, one), lambda s, tx, one: s.detectors.find(tx, one.id), {}),
    EventOutput: (lambda s, tx, one: s.event_outputs.insert(tx, one), lambda s, tx, one: s.event_outputs.all(tx)[0], {}),
    Heartbeat: (lambda s, tx, one: s.instances.put(tx, one), lambda s, tx, one: s.instances.all(tx)[0], {}),
    Hold: (
        lambda s, tx, one: HOLDS.insert(tx, one, id="hold_1", held_at=0),
        lambda s, tx, one: HOLDS.many(tx, "WHERE id = 'hold_1'")[0],
        {},
    ),
    KeptText: (keep_text, lambda s, tx, one: s.captures.of_request(tx, "trf_1", now_at=0)[0], {}),
    KeyRecord: (lambda s, tx, one: s.keys.insert(tx, one), lambda s, tx, one: s.keys.by_id(tx, one.id), {}),
    Peer: (lambda s, tx, one: s.peers.insert(tx, one), lambda s, tx, one: s.peers.all(tx)[0], {}),
    LocalRule: (lambda s, tx, one: s.local_rules.insert(tx, one), lambda s, tx, one: s.local_rules.all(tx)[0], {}),
    PolicyRecord: (lambda s, tx, one: s.policies.insert(tx, one), lambda s, tx, one: s.policies.find(tx, one.id), {}),
    PosturePoint: (lambda s, tx, one: s.trust_audits.insert_point(tx, one), lambda s, tx, one: s.trust_audits.points(tx, since=0)[0], {}),
    Provider: (lambda s, tx, one: s.providers.insert(tx, one), lambda s, tx, one: s.providers.find(tx, one.id), {"origin": "record"}),
    Report: (lambda s, tx, one: s.reports.insert(tx, one, document="text"), lambda s, tx, one: s.reports.document(tx, one.id)[0], {}),
    ReportSchedule: (lambda s, tx, one: s.report_schedules.insert(tx, one), lambda s, tx, one: s.report_schedules.all(tx)[0], {}),
    RiskAcceptance: (
        lambda s, tx, one: s.risk_acceptances.insert(tx, one),
        lambda s, tx, one: s.risk_acceptances.by_id(tx, one.id),
        {},
    ),
    RuleOverride: (lambda s, tx, one: s.rule_overrides.put(tx, one), lambda s, tx, one: s.rule_overrides.by_id(tx, one.rule), {}),
    SecurityScan: (lambda s, tx, one: s.security_scans.insert(tx, one), lambda s, tx, one: s.security_scans.by_id(tx, one.id), {}),
    SignInOrigin: (
        lambda s, tx, one: s.sign_in_failures.insert(tx, one, failed_at=1),
        lambda s, tx, one: s.sign_in_failures.many(tx, "WHERE account = :account", account=one.account)[0],
        {},
    ),
    Session: (
        lambda s, tx, one: (s.users.insert(tx, USER), s.sessions.insert(tx, one)),
        lambda s, tx, one: s.sessions.by_id(tx, one.id).session,
        {"user_id": USER.id},
    ),
    TrafficRow: (lambda s, tx, one: s.traffic.insert(tx, one), lambda s, tx, one: s.traffic.find(tx, one.id), {}),
    TrustAudit: (lambda s, tx, one: s.trust_audits.insert(tx, one), lambda s, tx, one: s.trust_audits.latest(tx), {}),
    User: (lambda s, tx, one: s.users.insert(tx, one), lambda s, tx, one: s.users.by_id(tx, one.id), {}),
}  # fmt: skip


def sample(hint: Any, name: str, default: object = MISSING) -> Any:
    """Return a value of a type that is not the default."""
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return sample(next(one for one in options if one is not NoneType), name, default)
    if origin is Literal:
        return next(one for one in options if one != default)
    if origin is tuple:
        return (sample(options[0], name), sample(options[0], name + "ß"))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"ü": sample(options[1], name), "": sample(options[1], name)}
    if is_dataclass(hint):
        return full(hint)
    if hint is bool:
        return not default
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(one for one in reversed([*hint]) if one != default)
    return {str: f"{name} 'ü'", int: 2**40 + len(name), float: 0.25, object: [name, None]}[hint]


def full(cls: Any, **given: object) -> Any:
    """Return a record of which no field has its default value."""
    hints = get_type_hints(cls)
    made = {one.name: sample(hints[one.name], one.name, one.default) for one in fields(cls)}
    return cls(**made | given)


@pytest.mark.parametrize("cls", ROWS, ids=lambda cls: cls.__name__)
async def test_a_record_reads_back_as_it_was_written(store: Store, cls: type) -> None:
    write, read, given = ROWS[cls]
    record = full(cls, **given)
    for one in fields(cls):
        assert one.name in given or getattr(record, one.name) not in (None, one.default)

    await seed(store, lambda tx: write(store, tx, record))

    found = await store.db.read(lambda tx: read(store, tx, record))
    assert found == record
    for one in fields(cls):
        assert type(getattr(found, one.name)) is type(getattr(record, one.name)), one.name


async def test_the_record_of_every_table_is_tried(store: Store) -> None:
    kept = {one._record for one in vars(store).values() if isinstance(one, TableReader)}
    kept |= {
        one._record
        for module in map(
            import_module, ("gateway.store." + name for _, name, _ in iter_modules(gateway.store.__path__))
        )
        for one in vars(module).values()
        if isinstance(one, TableReader)
    }
    assert kept == ROWS.keys()
