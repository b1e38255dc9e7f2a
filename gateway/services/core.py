"""What nearly every service is made of."""

from dataclasses import InitVar, dataclass, field
from typing import dataclass_transform

from gateway.clock import Clock, Ids
from gateway.metrics import Metrics
from gateway.services.audit import Audit
from gateway.store.metric_board import MetricBoard
from gateway.store.store import Store


class Core:
    """The database, the log, the clock, the ids, the metrics, and the audit log. board: for the sum of all metrics."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, board: MetricBoard | None = None) -> None:
        self.store = store
        self.log = store.log
        self.clock = clock
        self.ids = ids
        self.metrics = Metrics(board=board)
        self.audit = Audit(store=store, clock=clock, ids=ids)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
@dataclass(eq=False, repr=False)
class Service:
    """A service over the parts of a core. It does not keep the core itself, which may hold every other service.

    Each subclass is a dataclass, whose own fields are given by name.
    """

    core: InitVar[Core]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(eq=False, repr=False, kw_only=True)(cls)

    def __post_init__(self, core: Core) -> None:
        self.store = core.store
        self.log = core.log
        self.clock = core.clock
        self.ids = core.ids
        self.metrics = core.metrics
        self.audit = core.audit
