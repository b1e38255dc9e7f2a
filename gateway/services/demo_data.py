"""Write a made-up day into a fresh database: keys, providers, budgets, agents, requests, alerts and their audit events.

What is written is tagged as `DEMO`, and so is the database: whatever it holds from then on is of that origin, and no
number of production ever stands beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.auth.keyhash import KEY_RANDOM_BYTES, hash_key, make_key, prefix_of
from gateway.domain.agents import AgentRecord, AgentSource, fold_name
from gateway.domain.alerts import Alert, AlertFilter, AlertSource, AlertStatus, WantedAlert
from gateway.domain.budgets import Budget, BudgetAction, BudgetScope, BudgetUnit, BudgetWindow, period_of
from gateway.domain.demo import KEYS, PROVIDERS, DemoDay, DemoRequest, DemoRule
from gateway.domain.keys import KeyRecord
from gateway.domain.posture import Activity, PosturePoint, threat_score
from gateway.domain.principals import Principal, RequestContext, Scope
from gateway.domain.providers import Provider, ProviderType
from gateway.domain.traffic import DEMO, TrafficRow
from gateway.errors import Conflict
from gateway.services.agent_discovery import AgentDiscovery, Sighting
from gateway.services.alerts import Alerts
from gateway.services.audit import Audit
from gateway.services.demo_clock import DemoClock, DemoIds
from gateway.services.findings import described
from gateway.services.traffic import Traffic
from gateway.shield import Shield
from gateway.shield.detections import Direction, Severity, Verdict
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.store import Store

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
_AT_ONCE = 2000
_POINT_MS = 10 * 60_000
_GUESSES = 24
_GUESSER = "198.51.100.7"
_PEOPLE = ("dana", "kim", "noor")


@dataclass(frozen=True, slots=True)
class DemoReport:
    """What was written."""

    seed: int
    since_at: int
    until_at: int
    requests: int
    blocks: int
    reviews: int
    agents: int
    keys: int
    providers: int
    alerts: int
    audit_events: int


class DemoData:
    """Tells the story of one seed to one database."""

    def __init__(self, *, store: Store, shield: Shield, seed: int, until_at: int, requests: int) -> None:
        rules = [DemoRule(one.id, one.name, one.category, one.severity, one.description) for one in shield.rules]
        self._store = store
        self._seed = seed
        self._day = DemoDay(seed=seed, until_at=until_at, requests=requests, rules=rules)
        self._until_at = until_at
        self._clock = clock = DemoClock(self._day.begin_at - HOUR_MS)
        self._ids = ids = DemoIds(clock, seed)
        self._audit = Audit(store=store, clock=clock, ids=ids, instance_id=store.instance_id)
        self._alerts = Alerts(store=store, clock=clock, ids=ids, audit=self._audit)
        self._sightings = AgentDiscovery(store=store, clock=clock, ids=ids, alerts=self._alerts)
        self._keys: list[Principal] = []
        self._counts = dict.fromkeys(Verdict, 0)
        self._costs = {provider.name: 0 for provider in PROVIDERS}
        self._tokens = 0
        self._blocks_at: list[int] = []
        self._has_guessed = False

    async def write(self) -> DemoReport:
        """Write everything.

        Raises:
            Conflict: the database holds something already.
        """
        await self._store.db.write(self._claim)
        await self._audit.commit_authority(self._found)
        batch: list[DemoRequest] = []
        written = 0
        for request in self._day.requests():
            batch.append(request)
            if len(batch) == _AT_ONCE:
                written += await self._write_batch(batch)
                batch = []
        written += await self._write_batch(batch)
        await self._store.db.write(self._note_threat)
        await self._audit.commit_authority(self._budget)
        await self._look_after_alerts()
        traffic = Traffic(store=self._store, clock=self._clock)
        while await traffic.advance():
            pass
        return await self._store.db.read(lambda tx: self._report(tx, written))

    def _claim(self, tx: Transaction) -> None:
        store = self._store
        if store.keys.count(tx) or store.users.count(tx) or store.traffic.summed(tx) or store.agents.count(tx):
            raise Conflict("The data folder is in use: demo data goes into a fresh one.")
        store.meta.set_origin(tx, DEMO)
        store.traffic.origin = DEMO

    def _found(self, tx: AuthorityTransaction) -> None:
        """Make keys, providers and registered agents, as people did in the weeks before."""
        for number, name in enumerate(KEYS):
            self._make_key(tx, number, name)
        for number, one in enumerate(PROVIDERS):
            record = Provider(
                id=self._ids.new("prv"),
                name=one.name,
                type=ProviderType.ECHO,
                models=tuple(one.models),
                priority=10 * (number + 1),
                prices=one.models,
                created_at=self._clock.at,
                created_by=_PEOPLE[0],
            )
            self._store.providers.insert(tx, record)
            self._note(tx, "provider_created", "provider", record.id, {"name": record.name})
        for agent in self._day.agents:
            if not agent.is_registered:
                continue
            made = AgentRecord(
                id=self._ids.new("agt"),
                name=agent.name,
                folded=fold_name(agent.name),
                source=AgentSource.MANUAL if agent.key % 2 else AgentSource.IMPORT,
                origin=DEMO,
                owner=agent.owner,
                role=agent.role,
                tags=(agent.owner, "production" if agent.weight > 0.1 else "pilot"),
                created_at=self._clock.at,
                created_by=_PEOPLE[1],
            )
            self._store.agents.insert(tx, made)
            self._note(tx, "agent_registered", "agent", made.id, {"name": made.name, "owner": made.owner})

    def _make_key(self, tx: AuthorityTransaction, number: int, name: str) -> None:
        key = make_key(self._ids.random_bytes(KEY_RANDOM_BYTES))
        created_at = self._clock.at - (3 + 11 * number) * DAY_MS
        record = KeyRecord(
            id=self._ids.new("key"),
            name=name,
            prefix=prefix_of(key),
            digest=hash_key(key),
            scopes=(Scope.CHAT_COMPLETIONS, Scope.SHIELD_SCAN),
            rate_limit=600,
            created_at=created_at,
            created_by=_PEOPLE[number % len(_PEOPLE)],
            expires_at=self._until_at + 30 * DAY_MS if number % 4 == 0 else None,
            last_used_at=self._until_at - number * 1000,
        )
        self._store.keys.insert(tx, record)
        self._keys.append(record.principal())
        self._note(tx, "api_key_created", "api_key", record.id, {"name": name, "scopes": list(record.scopes)})

    async def _write_batch(self, batch: Sequence[DemoRequest]) -> int:
        def work(tx: Transaction) -> None:
            for request in batch:
                self._write_one(tx, request)

        if batch:
            await self._store.db.write(work)
        return len(batch)

    def _write_one(self, tx: Transaction, request: DemoRequest) -> None:
        agent, result = request.agent, request.result
        who = self._keys[agent.key]
        row = replace(
            request.row,
            principal_id=who.id,
            key_prefix=who.key_prefix,
            instance_id=self._store.instance_id,
            detections=tuple(described(result.detections, _direction(request.row))),
        )
        self._clock.at = row.occurred_at
        self._counts[result.verdict] += 1
        if result.verdict is Verdict.BLOCK:
            self._blocks_at.append(row.occurred_at)
        self._costs[row.provider or PROVIDERS[0].name] += row.cost_microusd or 0
        self._tokens += (row.prompt_tokens or 0) + (row.reply_tokens or 0)
        self._store.traffic.insert(tx, row)
        context = RequestContext(request_id=row.request_id, ip=f"192.0.2.{10 + agent.key}", agent=agent.name)
        is_chat = row.model is not None
        if is_chat:
            sighting = Sighting(
                name=agent.name,
                source=AgentSource.TRAFFIC,
                occurred_at=row.occurred_at,
                model=row.model,
                tools=agent.tools,
            )
            self._sightings.seen(tx, sighting, context=context, principal=who)
        if not self._has_guessed and row.occurred_at >= self._day.guesses_at:
            self._has_guessed = True
            self._guess(tx, row.occurred_at)
        if row.status == 502:
            self._fail(tx, row.provider or "", row.occurred_at)
        if result.verdict is Verdict.ALLOW:
            return
        self._alerts.raise_from_scan(
            tx,
            result,
            principal=who,
            context=context,
            origin="chat.inbound" if is_chat else row.operation,
            occurred_at=row.occurred_at,
            direction=_direction(row),
        )
        self._record(tx, request, row, who, context)

    def _record(
        self, tx: Transaction, request: DemoRequest, row: TrafficRow, who: Principal, context: RequestContext
    ) -> None:
        """Append the event of a request in which something was found."""
        result, is_chat = request.result, row.model is not None
        is_block = result.verdict is Verdict.BLOCK
        action = f"shield_scan_{result.verdict.value.lower()}"
        if is_chat:
            action = "chat_blocked" if is_block else "chat_completed"
        event = self._audit.event(
            action,
            source="chat" if is_chat else "shield",
            outcome="refused" if is_chat and is_block else "success",
            reason="content_policy_violation" if is_chat and is_block else None,
            principal=who,
            request=context,
            resource_type="model" if is_chat else "text",
            resource_id=row.model,
            details={"verdict": row.verdict, "score": row.score, "detections": list(row.detections)},
        )
        self._audit.append(tx, event)

    def _guess(self, tx: Transaction, occurred_at: int) -> None:
        """Let somebody try keys out."""
        stranger = Principal("key", "unknown", "unknown", frozenset(), frozenset())
        for number in range(_GUESSES):
            self._clock.at = occurred_at + 100 * number
            context = RequestContext(request_id=self._ids.new("req"), ip=_GUESSER)
            event = self._audit.event(
                "api_key_refused",
                source="auth",
                outcome="refused",
                reason="invalid_api_key",
                principal=stranger,
                request=context,
                resource_type="api_key",
            )
            self._audit.append(tx, event)
        self._alerts.raise_event(
            tx,
            source=AlertSource.AUTH,
            rule="many-invalid-keys",
            severity=Severity.HIGH,
            title="Somebody tries out API keys",
            description="Many API keys that are wrong, revoked or expired came from one address within seconds.",
            subject=_GUESSER,
            occurred_at=occurred_at,
            evidence=({"ip": _GUESSER, "refused": _GUESSES},),
        )

    def _fail(self, tx: Transaction, provider: str, occurred_at: int) -> None:
        if not self._day.is_down(provider, occurred_at):
            return
        self._alerts.raise_event(
            tx,
            source=AlertSource.PROVIDER,
            rule="provider-down",
            severity=Severity.HIGH,
            title=f"The provider {provider} does not answer",
            description="Five requests in a row failed, so that prompts go to the next provider for a while.",
            subject=provider,
            occurred_at=occurred_at,
        )

    def _note_threat(self, tx: Transaction) -> None:
        """Note the course of the threat score over the day, as the blocks made it. There was no trust audit yet."""
        for at in range(self._day.begin_at // _POINT_MS * _POINT_MS + _POINT_MS, self._until_at, _POINT_MS):
            blocks_at = [one for one in self._blocks_at if one <= at]
            point = PosturePoint(at, threat_score(Activity(now_at=at, blocks_at=blocks_at)), None)
            self._store.trust_audits.note(tx, point)

    def _budget(self, tx: AuthorityTransaction) -> None:
        """Make budgets that the day has spent from; one of them is nearly used up."""
        self._clock.at = self._until_at
        total = sum(self._costs.values())
        first = PROVIDERS[0].name
        wanted = (
            ("all providers", BudgetScope.GLOBAL, None, BudgetUnit.USD, 2 * total, total),
            (first, BudgetScope.PROVIDER, first, BudgetUnit.USD, int(1.1 * self._costs[first]), self._costs[first]),
            ("tokens of a day", BudgetScope.GLOBAL, None, BudgetUnit.TOKENS, 4 * self._tokens, self._tokens),
        )
        for name, scope, value, unit, limit, spent in wanted:
            budget = Budget(
                id=self._ids.new("bud"),
                name=name,
                scope=scope,
                scope_value=value,
                unit=unit,
                limit_amount=max(1, limit),
                window=BudgetWindow.MONTH,
                action=BudgetAction.WARN,
                created_at=self._until_at,
                created_by=_PEOPLE[0],
            )
            self._store.budgets.insert(tx, budget)
            period = period_of(budget.window, self._until_at)
            self._store.budgets.spend(tx, budget, period.begins_at, spent)
            self._note(tx, "budget_created", "budget", budget.id, {"name": name, "limit_amount": budget.limit_amount})

    async def _look_after_alerts(self) -> None:
        """Let people do something about some of the alerts, and let the outage be over."""
        self._clock.at = self._until_at
        await self._store.db.write(self._end_outage)
        found = (await self._alerts.page(AlertFilter(scope="active", limit=500))).items
        for number, alert in enumerate(reversed(found)):
            for status, note in _STEPS[number % len(_STEPS)]:
                wanted = WantedAlert(
                    status=status,
                    note=note,
                    suppressed_until_at=self._until_at + 7 * DAY_MS if status is AlertStatus.SUPPRESSED else None,
                )
                await self._move(alert, wanted, _PEOPLE[number % len(_PEOPLE)])

    def _end_outage(self, tx: Transaction) -> int:
        return self._alerts.end_event(
            tx,
            source=AlertSource.PROVIDER,
            rule="provider-down",
            subject="borealis",
            occurred_at=self._until_at,
            resolution="It answers again.",
        )

    async def _move(self, alert: Alert, wanted: WantedAlert, name: str) -> None:
        context = RequestContext(request_id=self._ids.new("req"), ip="192.0.2.2")
        await self._alerts.change(_person(name), alert.id, wanted, context)

    def _note(self, tx: Transaction, action: str, kind: str, id: str, after: dict[str, object]) -> None:
        event = self._audit.event(
            action,
            source="api",
            principal=_person(_PEOPLE[0]),
            resource_type=kind,
            resource_id=id,
            after=after,
        )
        self._audit.append(tx, event)

    def _report(self, tx: Transaction, written: int) -> DemoReport:
        return DemoReport(
            seed=self._seed,
            since_at=self._day.begin_at,
            until_at=self._until_at,
            requests=written,
            blocks=self._counts[Verdict.BLOCK],
            reviews=self._counts[Verdict.REVIEW],
            agents=self._store.agents.count(tx),
            keys=len(self._keys),
            providers=len(PROVIDERS),
            alerts=self._store.alerts.count(tx),
            audit_events=self._store.audit.head(tx, self._store.instance_id).seq,
        )


def _person(name: str) -> Principal:
    return Principal("user", f"usr_{name}", name, frozenset(), frozenset())


_STEPS: tuple[tuple[tuple[AlertStatus, str | None], ...], ...] = (
    (),
    ((AlertStatus.ACKNOWLEDGED, "Looking at it."),),
    (),
    ((AlertStatus.ACKNOWLEDGED, None), (AlertStatus.INVESTIGATING, "Asked the owner of the agent.")),
    ((AlertStatus.RESOLVED, "The prompt was changed."),),
    ((AlertStatus.FALSE_POSITIVE, "A text about attacks, not one."),),
    (),
    ((AlertStatus.SUPPRESSED, "Known until the next release."),),
)


def _direction(row: TrafficRow) -> Direction:
    return Direction(row.direction or Direction.INBOUND)
