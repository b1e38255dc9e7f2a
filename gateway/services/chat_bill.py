"""Who pays for one completion: the worst case is taken before it is sent, the real one stands afterwards."""

from collections.abc import Sequence

from gateway.clock import Ids
from gateway.domain.alerts import AlertSource, fingerprint
from gateway.domain.budgets import Spender
from gateway.domain.traffic import TrafficRow
from gateway.llm.base import Reply
from gateway.services.alerts import Alerts
from gateway.services.chat_costs import ChatCosts
from gateway.services.chat_turn import Turn
from gateway.services.routing import Candidate
from gateway.services.spending import Spending
from gateway.shield.detections import Severity
from gateway.store.database import Transaction
from gateway.store.store import Store

UNKNOWN_PRICE_RULE = "unknown-price"
_MAX_TOLD = 1000


class ChatBill:
    """Puts prices, budgets and alerts to one turn after the other."""

    def __init__(self, *, store: Store, ids: Ids, alerts: Alerts, costs: ChatCosts, spending: Spending) -> None:
        self._store = store
        self._ids = ids
        self._alerts = alerts
        self._costs = costs
        self._spending = spending
        self._told: set[str] = set()

    def is_any(self) -> bool:
        """Tell whether there is any budget that may cover a turn.

        Raises:
            StoreUnavailable: nobody knows.
        """
        return self._spending.any()

    async def reserve(self, turn: Turn, candidates: Sequence[Candidate], opaque_parts: int) -> None:
        """Take the most that the turn can cost from all budgets that cover it. `is_any` comes first.

        Raises:
            OverBudget: one has less left; nothing was taken. StoreUnavailable: nothing was taken.
        """
        turn.payees = frozenset(word for one in candidates for word in (one.id, one.name))
        spender = Spender(turn.principal.lineage, turn.claimed_agent(), turn.prompt.model, turn.payees)
        covering = self._spending.covering(spender)
        if covering:
            turn.worst = self._costs.worst(turn.prompt, candidates, opaque_parts)
            # Noted first: a caller who leaves while this waits has it given back all the same.
            turn.hold_id = self._ids.new("hold")
            turn.held = await self._spending.reserve(turn.hold_id, covering, turn.worst)

    def answered(self, turn: Turn, reply: Reply, by: Candidate) -> None:
        """Note who answered, and what that took."""
        turn.provider = by.name
        if turn.hold_id is not None:
            turn.payees = frozenset((by.id, by.name))
        turn.used = self._costs.actual(turn.prompt, reply, by, turn.worst)

    def settle(self, tx: Transaction, turn: Turn, row: TrafficRow) -> None:
        """Put in `tx` what was used in the place of what was taken, and tell of what nobody knows a price for."""
        if turn.hold_id is not None:
            self._spending.settle(tx, turn.hold_id, turn.held, turn.used, turn.payees)
        if turn.over_budget is not None:
            self._spending.refused(tx, turn.over_budget)
        if turn.reply is not None and turn.used is not None and turn.used.microusd is None and row.model is not None:
            self._tell_unknown(tx, row.model, row.occurred_at)

    def is_settled(self, turn: Turn, row: TrafficRow) -> bool:
        """Tell whether `settle` has nothing to write."""
        if turn.hold_id is not None or turn.over_budget is not None:
            return False
        used = turn.used
        return used is None or used.microusd is not None or row.model in self._told

    def _tell_unknown(self, tx: Transaction, model: str, occurred_at: int) -> None:
        if model in self._told:
            return
        if len(self._told) < _MAX_TOLD:
            self._told.add(model)
        if self._store.alerts.latest(tx, fingerprint(AlertSource.BUDGET, UNKNOWN_PRICE_RULE, model)) is not None:
            return
        self._alerts.raise_event(
            tx,
            source=AlertSource.BUDGET,
            rule=UNKNOWN_PRICE_RULE,
            severity=Severity.LOW,
            title=f"Nobody knows what {model} costs",
            description="It is counted in tokens, and costs budgets of dollars nothing. Give its provider a price.",
            subject=model,
            occurred_at=occurred_at,
        )
