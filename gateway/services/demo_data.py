"""Write the made-up day of `domain/demo.py` into a fresh database, with its keys, agents, alerts and audit events.

Everything goes through the services and repositories that real traffic uses, under a clock that follows the story.
The database is marked as `DEMO`: whatever it holds from then on has that origin, so no number mixes it with production.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from gateway.clock import Clock, Ids, ulid
from gateway.domain.agents import AgentSource
from gateway.domain.alerts import AlertFilter, AlertSource, AlertStatus, WantedAlert
from gateway.domain.budgets import MICRO, BudgetAction, BudgetScope, BudgetUnit, BudgetWindow
from gateway.domain.demo import DAY_MS, HOUR_MS, KEYS, OUTAGE, PROVIDERS, DemoDay, DemoRequest, seeded
from gateway.domain.keys import NewKey
from gateway.domain.posture import Activity, PosturePoint, threat_score
from gateway.domain.principals import Caller, Principal, RequestContext, Scope
from gateway.domain.providers import Provider, ProviderType
from gateway.domain.traffic import DEMO, TrafficRow
from gateway.errors import Conflict
from gateway.services.agent_discovery import AgentDiscovery, Sighting
from gateway.services.agents import Agents, WantedAgent
from gateway.services.alerts import Alerts
from gateway.services.budgets import Budgets, WantedBudget
from gateway.services.core import Core
from gateway.services.findings import described
from gateway.services.keys import Keys
from gateway.services.refusals import GUESSES, stranger
from gateway.services.spending import Spending
from gateway.services.traffic import Traffic
from gateway.shield import Shield
from gateway.shield.detections import Detection, Direction, Severity, Verdict
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.meta import ORIGIN
from gateway.store.store import Store

_BATCH = 2000
_POINT_MS = 10 * 60_000
_GUESSES = 24
_GUESSER = "198.51.100.7"
_CHAT_SCOPES = (Scope.CHAT_COMPLETIONS, Scope.SHIELD_SCAN)
_PEOPLE = tuple(
    Principal("user", f"usr_{name}", name, frozenset(_CHAT_SCOPES), frozenset()) for name in ("dana", "kim", "noor")
)
_STEPS: tuple[tuple[tuple[AlertStatus, str | None], ...], ...] = (
    (),
    ((AlertStatus.ACKNOWLEDGED, "Looking at it."),),
    (),
    ((AlertStatus.ACKNOWLEDGED, None), (AlertStatus.INVESTIGATING, "Asked the owner of the agent.")),
    ((AlertStatus.RESOLVED, "The prompt was changed."),),
    ((AlertStatus.FALSE_POSITIVE, "A text about attacks, not an attack."),),
    (),
    ((AlertStatus.SUPPRESSED, "Known until the next release."),),
)
"""What people do with the alerts: the first alert takes the first row, and so on in turn."""


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


class _StoryTime(Clock, Ids):
    """The clock and the ids of the story. `at` is Unix milliseconds and moves with the requests."""

    def __init__(self, at: int, seed: int) -> None:
        self.at = at
        self._rng = seeded(seed + 2)

    def now_at(self) -> int:
        return self.at

    def now_ns(self) -> int:
        return self.at * 1_000_000

    def monotonic_seconds(self) -> float:
        return self.at / 1000

    def new(self, prefix: str) -> str:
        return ulid(prefix, self.at << 80 | self._rng.getrandbits(80))

    def random_bytes(self, count: int) -> bytes:
        """Return bytes that are no secret: nobody receives the keys made of them."""
        return self._rng.randbytes(count)


class DemoData:
    """Writes the day of one seed into one database."""

    def __init__(self, *, store: Store, shield: Shield, seed: int, until_at: int, requests: int) -> None:
        rules = [
            Detection(one.id, one.name, one.category, one.severity, one.description, confidence=0.9)
            for one in shield.rules
        ]
        self._store = store
        self._seed = seed
        self._until_at = until_at
        self._day = DemoDay(seed=seed, until_at=until_at, requests=requests, rules=rules)
        self._time = time = _StoryTime(self._day.begin_at - HOUR_MS, seed)
        core = self._core = Core(store, time, time)
        self._alerts = Alerts(core)
        self._traffic = Traffic(core)
        self._discovery = AgentDiscovery(core, alerts=self._alerts)
        self._keys: list[Principal] = []
        self._verdicts: Counter[Verdict] = Counter()
        self._spent: Counter[str] = Counter()  # USD by provider, in microusd, and tokens
        self._blocks_at: list[int] = []
        self._has_guessed = False

    async def write(self) -> DemoReport:
        """Write everything. Raises Conflict if the database already holds something."""
        write = self._store.db.write
        await write(self._claim)
        await self._make_keys()
        await self._core.audit.commit_authority(self._caller(_PEOPLE[0]), self._make_providers)
        await self._register_agents()
        requests = self._day.requests()
        while batch := [*islice(requests, _BATCH)]:
            await write(partial(self._write_requests, batch))
        await write(self._write_threat_scores)
        self._time.at = self._until_at
        await self._make_budgets()
        await self._handle_alerts()
        while await self._traffic.advance():
            pass
        return await self._store.db.read(self._report)

    def _claim(self, tx: Transaction) -> None:
        store = self._store
        if store.keys.count(tx) or store.users.count(tx) or store.traffic.summed(tx) or store.agents.count(tx):
            raise Conflict("The data folder is in use: demo data goes into a fresh one.")
        store.meta.set(tx, ORIGIN, DEMO)
        store.traffic.origin = DEMO

    async def _make_keys(self) -> None:
        service, begin_at = Keys(self._core), self._time.at
        for number, name in reversed([*enumerate(KEYS)]):
            self._time.at = begin_at - (3 + 11 * number) * DAY_MS
            expires_at = self._until_at + 30 * DAY_MS if number % 4 == 0 else None
            new = NewKey(name=name, scopes=_CHAT_SCOPES, rate_limit=600, expires_at=expires_at)
            made = await service.create(self._caller(_PEOPLE[number % len(_PEOPLE)]), new)
            used_at = self._until_at - number * 1000
            await self._store.db.write(partial(self._store.keys.mark_used, key_id=made.record.id, now_at=used_at))
            self._keys.insert(0, made.record.principal())
        self._time.at = begin_at

    def _make_providers(self, tx: AuthorityTransaction) -> None:
        for number, one in enumerate(PROVIDERS):
            provider = Provider(
                id=self._time.new("prv"), name=one.name, type=ProviderType.ECHO, models=tuple(one.models),
                priority=10 * (number + 1), prices=one.models, created_at=self._time.at, created_by=_PEOPLE[0].name,
            )  # fmt: skip
            self._store.providers.insert(tx, provider)
            after = {"name": one.name}
            self._core.audit.append_change(
                tx, "provider_created", self._caller(_PEOPLE[0]), "provider", provider.id, after=after
            )

    async def _register_agents(self) -> None:
        """Register one half of the known agents one by one, and import the other."""
        service = Agents(self._core, traffic=self._traffic)
        imported = []
        for agent in self._day.agents:
            wanted = WantedAgent(name=agent.name, owner=agent.owner, role=agent.role, tags=(agent.owner,))
            if agent.is_registered and agent.key % 2:
                await service.register(self._caller(_PEOPLE[1]), wanted)
            elif agent.is_registered:
                imported.append(wanted)
        await service.import_list(self._caller(_PEOPLE[1]), imported)

    def _write_requests(self, batch: Sequence[DemoRequest], tx: Transaction) -> None:
        for request in batch:
            self._write_request(tx, request)

    def _write_request(self, tx: Transaction, request: DemoRequest) -> None:
        agent, verdict, at = request.agent, request.result.verdict, request.row.occurred_at
        key = self._keys[agent.key]
        direction = Direction(request.row.direction or Direction.INBOUND)
        self._time.at = at
        row = replace(
            request.row,
            id=self._time.new("trf"),
            request_id=self._time.new("req"),
            principal_id=key.id,
            key_prefix=key.key_prefix,
            instance_id=self._store.instance_id,
            detections=tuple(described(request.result.detections, direction)),
        )
        self._verdicts[verdict] += 1
        self._spent[row.provider or ""] += row.cost_microusd or 0
        self._spent["tokens"] += (row.prompt_tokens or 0) + (row.reply_tokens or 0)
        self._store.traffic.insert(tx, row)
        context = RequestContext(request_id=row.request_id, ip=f"192.0.2.{10 + agent.key}", agent=agent.name)
        caller = Caller(key, context)
        if row.model is not None:
            sighting = Sighting(
                name=agent.name, source=AgentSource.TRAFFIC, occurred_at=at, model=row.model, tools=agent.tools
            )
            self._discovery.record_sighting(tx, sighting, caller)
        if at >= self._day.guesses_at and not self._has_guessed:
            self._has_guessed = True
            self._write_guesses(tx, at)
        if row.status == 502 and self._day.is_down(row.provider or "", at):
            self._raise_outage(tx, at, is_down=True)
        if verdict is Verdict.ALLOW:
            return
        if verdict is Verdict.BLOCK:
            self._blocks_at.append(at)
        origin = "chat.inbound" if row.model else row.operation
        self._alerts.raise_from_scan(
            tx, request.result, caller=caller, origin=origin, occurred_at=at, direction=direction
        )
        self._log_finding(tx, row, caller)

    def _log_finding(self, tx: Transaction, row: TrafficRow, caller: Caller) -> None:
        is_chat, is_refused = row.model is not None, row.action == "blocked"
        action = f"shield_scan_{row.verdict.lower()}"
        if is_chat:
            action = "chat_blocked" if is_refused else "chat_completed"
        self._core.audit.append_change(
            tx,
            action,
            caller,
            "model" if is_chat else "text",
            row.model,
            source="chat" if is_chat else "shield",
            outcome="refused" if is_refused else "success",
            reason="content_policy_violation" if is_refused else None,
            details={"verdict": row.verdict, "score": row.score, "detections": list(row.detections)},
        )

    def _write_guesses(self, tx: Transaction, at: int) -> None:
        """Refuse a series of guessed API keys, and raise the alert of it."""
        for number in range(_GUESSES):
            self._time.at = at + 100 * number
            self._core.audit.append_change(
                tx, "api_key_refused", self._caller(stranger("key"), _GUESSER), "api_key", None, source="auth",
                outcome="refused", reason="invalid_api_key",
            )  # fmt: skip
        self._alerts.raise_event(
            tx, **GUESSES, subject=_GUESSER, occurred_at=at, evidence=({"ip": _GUESSER, "refused": _GUESSES},)
        )

    def _raise_outage(self, tx: Transaction, at: int, *, is_down: bool) -> None:
        self._alerts.raise_or_end(
            tx,
            is_down,
            source=AlertSource.PROVIDER,
            rule="provider-down",
            severity=Severity.HIGH,
            title=f"The provider {OUTAGE} does not answer",
            description="Five requests in a row failed, so that prompts go to the next provider for a while.",
            resolution="It answers again.",
            subject=OUTAGE,
            occurred_at=at,
        )

    def _write_threat_scores(self, tx: Transaction) -> None:
        """Write the threat score of each ten minutes, from the blocks. There was no trust audit yet."""
        for at in range(self._day.begin_at // _POINT_MS * _POINT_MS + _POINT_MS, self._until_at, _POINT_MS):
            blocks_at = [one for one in self._blocks_at if one <= at]
            score = threat_score(Activity(now_at=at, blocks_at=blocks_at))
            self._store.trust_audits.insert_point(tx, PosturePoint(at, score, None))

    async def _make_budgets(self) -> None:
        """Make the budgets that the day has spent from. One of them is nearly used up."""
        store = self._store
        service = Budgets(self._core, spending=Spending(self._core, alerts=self._alerts))
        first, tokens = PROVIDERS[0].name, self._spent.pop("tokens")
        total = self._spent.total()
        for name, scope, value, unit, limit, spent in (
            ("all providers", BudgetScope.GLOBAL, None, BudgetUnit.USD, 2 * total / MICRO, total),
            (first, BudgetScope.PROVIDER, first, BudgetUnit.USD, 1.1 * self._spent[first] / MICRO, self._spent[first]),
            ("tokens of a day", BudgetScope.GLOBAL, None, BudgetUnit.TOKENS, 4 * tokens, tokens),
        ):
            new = WantedBudget(
                name=name, scope=scope, scope_value=value, unit=unit, limit=limit or 1,
                window=BudgetWindow.MONTH, action=BudgetAction.WARN,
            )  # fmt: skip
            standing = await service.create(self._caller(_PEOPLE[0]), new)
            begins_at = standing.period.begins_at
            await store.db.write(
                partial(store.budgets.spend, budget=standing.budget, begins_at=begins_at, amount=spent)
            )

    async def _handle_alerts(self) -> None:
        """End the outage, and let people work on some of the alerts."""
        at = self._until_at
        await self._store.db.write(partial(self._raise_outage, at=at, is_down=False))
        alerts = (await self._alerts.page(AlertFilter(scope="active", limit=500))).items
        for number, alert in enumerate(reversed(alerts)):
            for status, note in _STEPS[number % len(_STEPS)]:
                until_at = at + 7 * DAY_MS if status is AlertStatus.SUPPRESSED else None
                wanted = WantedAlert(status=status, note=note, suppressed_until_at=until_at)
                await self._alerts.change(self._caller(_PEOPLE[number % len(_PEOPLE)]), alert.id, wanted)

    def _caller(self, principal: Principal, ip: str = "192.0.2.2") -> Caller:
        return Caller(principal, RequestContext(request_id=self._time.new("req"), ip=ip))

    def _report(self, tx: Transaction) -> DemoReport:
        return DemoReport(
            seed=self._seed,
            since_at=self._day.begin_at,
            until_at=self._until_at,
            requests=self._verdicts.total(),
            blocks=self._verdicts[Verdict.BLOCK],
            reviews=self._verdicts[Verdict.REVIEW],
            agents=self._store.agents.count(tx),
            keys=len(self._keys),
            providers=len(PROVIDERS),
            alerts=self._store.alerts.count(tx),
            audit_events=self._store.audit.head(tx, self._store.instance_id).seq,
        )
