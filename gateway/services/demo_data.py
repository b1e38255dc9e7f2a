"""Write one made-up day of a made-up company into a fresh database: traffic, keys, agents, alerts and audit events.

All names are invented: those in `demo.json`, with prices as round numbers. No text exists behind the hashes. Three
incidents happen: an attacker takes over one agent for half an hour, a provider is down for as long, and somebody tries
to guess API keys.

Everything goes through the services and repositories that real traffic uses, under a clock that follows the story.
The database is marked as `DEMO`: whatever it holds from then on has that origin, so no number mixes it with production.
"""

import io
import json
import math
import random
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from gateway import bundle
from gateway.clock import Clock, Ids
from gateway.domain.agents import AgentSource
from gateway.domain.alerts import AlertFilter, AlertStatus, WantedAlert
from gateway.domain.budgets import MICRO, BudgetAction, BudgetScope, BudgetUnit, BudgetWindow
from gateway.domain.keys import NewKey
from gateway.domain.posture import DAY_MS, Activity, PosturePoint, threat_score
from gateway.domain.prices import Price
from gateway.domain.principals import Caller, Principal, RequestContext, Scope
from gateway.domain.providers import Provider, ProviderType
from gateway.domain.traffic import DEMO, TrafficRow
from gateway.errors import Conflict
from gateway.log import Log
from gateway.records import project
from gateway.services.agent_discovery import AgentDiscovery, Sighting
from gateway.services.agents import Agents, WantedAgent
from gateway.services.alerts import Alerts
from gateway.services.budgets import Budgets, WantedBudget
from gateway.services.circuits import Circuits
from gateway.services.core import Core
from gateway.services.findings import described
from gateway.services.keys import Keys
from gateway.services.refusals import GUESSES, stranger
from gateway.services.spending import Spending
from gateway.services.traffic import SummaryFilter, Traffic, TrafficSummary
from gateway.shield import Shield
from gateway.shield.detections import Detection, Direction, ScanResult, Severity, Verdict
from gateway.shield.scoring import MODEL_RULE, MODEL_SAYS, judge
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.meta import ORIGIN
from gateway.store.store import Store

_HOUR_MS = 3_600_000
_PERIOD_MS = _HOUR_MS // 6  # the requests of a period are written in one transaction
_AGENTS = 40
_POPULARITY = [(1 + number) ** -0.7 for number in range(_AGENTS)]
_ATTACKER = 3.0  # how much traffic the attacker adds, in the unit of `_busy`: as much at night as by day
_OUTAGE = "borealis"  # the provider that is down
_GUESSES = 24
_GUESSER = "198.51.100.7"
_NOISE = {"pii": 5, "secret": 2, "injection": 2, "encoding": 1, "social_engineering": 1}
_ATTACK = {"injection": 6, "jailbreak": 4, "extraction": 3, "tool_abuse": 2, "exfiltration": 2}
_MODEL = Detection(MODEL_RULE, MODEL_SAYS[0], "injection", Severity.HIGH, MODEL_SAYS[1])
_SCOPES = (Scope.CHAT_COMPLETIONS, Scope.SHIELD_SCAN)
_PEOPLE = [Principal("user", f"usr_{name}", name, frozenset(_SCOPES), frozenset()) for name in ("dana", "kim", "noor")]
_HANDLED = {
    1: (AlertStatus.ACKNOWLEDGED, "Looking at it."),
    3: (AlertStatus.INVESTIGATING, "Asked the owner of the agent."),
    4: (AlertStatus.RESOLVED, "The prompt was changed."),
    5: (AlertStatus.FALSE_POSITIVE, "A text about attacks, not an attack."),
    7: (AlertStatus.SUPPRESSED, "Known until the next release."),
}
"""What people do with the alerts, by the place in each group of eight."""


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


class _Model(NamedTuple):
    """One model. share: of the agents. latency_ms: the median time until it answers."""

    name: str
    provider: str
    share: int
    latency_ms: float
    price: Price


class _Agent(NamedTuple):
    """One agent. key: the number of the key it calls with."""

    name: str
    owner: str
    role: str
    tools: tuple[str, ...]
    key: int
    model: _Model


class _StoryTime(Clock, Ids):
    """The clock and the ids of the story. `at` is Unix milliseconds and moves with the requests."""

    def __init__(self, at: int, rng: random.Random) -> None:
        Ids.__init__(self, self)
        self.at = at
        self._rng = rng

    def now_ns(self) -> int:
        return self.at * 1_000_000

    def monotonic_seconds(self) -> float:
        return self.at / 1000

    def random_bytes(self, count: int) -> bytes:
        """Return bytes that are no secret: nobody receives the keys made of them."""
        return self._rng.randbytes(count)


class DemoData:
    """Writes a day into one database. The same seed and end of day write the same requests.

    until_at: the end of the day, in Unix milliseconds. requests: how many there are.
    """

    def __init__(self, *, store: Store, shield: Shield, seed: int, until_at: int, requests: int) -> None:
        self._rules = [
            Detection(one.id, one.name, one.category, one.severity, one.description, confidence=0.9)
            for one in shield.rules
        ]
        self._store = store
        self._seed = seed
        self._rng = random.Random(seed)  # noqa: S311  # a story, not a secret
        self._requests = requests
        self._begin_at, self._until_at = until_at - DAY_MS, until_at
        attack_at, self._guesses_at = until_at - 5 * _HOUR_MS, until_at - 3 * _HOUR_MS
        # The busiest hour before the attack: nobody would notice an outage at night.
        outage_at = max(range(until_at - 20 * _HOUR_MS, attack_at, _HOUR_MS), key=_busy)
        self._attack, self._outage = (range(at, at + _HOUR_MS // 2) for at in (attack_at, outage_at))
        self._time = time = _StoryTime(self._begin_at, self._rng)
        core = self._core = Core(store, time, time)
        core.log = Log(io.StringIO(), time)  # what happens in the story does not happen to this program
        self._alerts = Alerts(core)
        self._traffic = Traffic(core)
        self._discovery = AgentDiscovery(core, alerts=self._alerts)
        self._circuits = Circuits(core, alerts=self._alerts)
        self._named: dict[str, Any] = json.loads(bundle.read("gateway/services/demo.json"))
        self._models = [_Model(**one | {"price": Price(**one["price"])}) for one in self._named["models"]]
        self._agents = [self._agent(number) for number in range(_AGENTS)]
        self._keys: list[Principal] = []
        self._blocks_at: list[int] = []

    async def write(self) -> DemoReport:
        """Write everything. Raises Conflict if the database already holds something."""
        await self._store.db.write(self._claim)
        await self._make_keys()
        providers = await self._core.audit.commit_authority(self._caller(), self._make_providers)
        await self._register_agents()
        periods = range(self._begin_at, self._until_at, _PERIOD_MS)
        weights = [_busy(at) + _ATTACKER * (at in self._attack) for at in periods]
        counts = Counter(self._rng.choices(periods, weights, k=self._requests))
        for begin_at in periods:
            self._time.at = begin_at
            if begin_at == self._outage.start:
                for _ in range(5):
                    self._circuits.failed(providers[_OUTAGE], "It does not answer.")
            elif begin_at == self._outage.stop:
                self._circuits.succeeded(providers[_OUTAGE])
            await self._store.db.write(partial(self._write_period, begin_at, counts[begin_at]))
        self._time.at = self._until_at
        while await self._traffic.advance():
            pass
        summary = await self._traffic.summary(SummaryFilter(since=self._begin_at))
        await self._make_budgets(summary)
        await self._handle_alerts()
        return await self._store.db.read(partial(self._report, summary))

    def _claim(self, tx: Transaction) -> None:
        store = self._store
        if store.keys.count(tx) or store.users.count(tx) or store.traffic.summed(tx) or store.agents.count(tx):
            raise Conflict("The data folder is in use: demo data goes into a fresh one.")
        store.meta.set(tx, ORIGIN, DEMO)
        store.traffic.origin = DEMO

    async def _make_keys(self) -> None:
        """Make a key every eleven days. Some of them will expire."""
        service = Keys(self._core)
        for number, name in enumerate(self._named["keys"]):
            self._time.at = self._begin_at - (3 + 11 * (len(self._named["keys"]) - number)) * DAY_MS
            expires_at = self._until_at + 30 * DAY_MS if number % 4 == 0 else None
            new = NewKey(name=name, scopes=_SCOPES, rate_limit=600, expires_at=expires_at)
            key = (await service.create(self._caller(number), new)).record
            used_at = self._until_at - number * 1000
            await self._store.db.write(partial(self._store.keys.mark_used, key_id=key.id, now_at=used_at))
            self._keys.append(key.principal())

    def _make_providers(self, tx: AuthorityTransaction) -> dict[str, Provider]:
        providers: dict[str, Provider] = {}
        for number, name in enumerate(dict.fromkeys(model.provider for model in self._models)):
            prices = {model.name: model.price for model in self._models if model.provider == name}
            made = providers[name] = Provider(
                id=self._time.new("prv"), name=name, type=ProviderType.ECHO, models=tuple(prices), prices=prices,
                priority=10 * (number + 1), created_at=self._time.at, created_by=tx.caller.principal.name,
            )  # fmt: skip
            self._store.providers.insert(tx, made)
            self._core.audit.append_change(tx, "provider_created", tx.caller, "provider", made.id, after={"name": name})
        return providers

    def _agent(self, number: int) -> _Agent:
        """Make up an agent. No two have both the same key and the same job."""
        keys, jobs = self._named["keys"], self._named["jobs"]
        key, job = number % len(keys), jobs[number % len(jobs)]
        owner = keys[key].partition("-")[0]
        model = self._rng.choices(self._models, [one.share for one in self._models])[0]
        return _Agent(f"{owner}-{job['name']}", owner, job["role"], tuple(job["tools"]), key, model)

    async def _register_agents(self) -> None:
        """Register some agents and import others. One in five is left to be discovered by its traffic."""
        service = Agents(self._core, traffic=self._traffic)
        known = [WantedAgent(name=one.name, owner=one.owner, role=one.role, tags=(one.owner,)) for one in self._agents]
        for wanted in (*known[::5], *known[1::5]):
            await service.register(self._caller(1), wanted)
        await service.import_list(self._caller(1), known[2::5] + known[3::5])

    def _write_period(self, begin_at: int, requests: int, tx: Transaction) -> None:
        """Write the requests of a period, and the threat score at its end. There was no trust audit yet."""
        if begin_at == self._guesses_at:
            self._write_guesses(tx)
        for at in sorted(begin_at + self._rng.randrange(_PERIOD_MS) for _ in range(requests)):
            self._write_request(tx, at)
        now_at = begin_at + _PERIOD_MS
        score = threat_score(Activity(now_at=now_at, blocks_at=self._blocks_at))
        self._store.trust_audits.insert_point(tx, PosturePoint(now_at, score, None))

    def _write_request(self, tx: Transaction, at: int) -> None:
        rng, time = self._rng, self._time
        time.at = at
        is_attack = at in self._attack and rng.random() * (_busy(at) + _ATTACKER) < _ATTACKER
        agent = self._agents[1] if is_attack else rng.choices(self._agents, _POPULARITY)[0]
        caller = self._caller(self._keys[agent.key], f"192.0.2.{10 + agent.key}", agent.name)
        is_chat = rng.random() < 0.85
        direction = Direction.OUTBOUND if not is_chat and rng.random() < 0.3 else Direction.INBOUND
        chars, sha256 = int(rng.lognormvariate(6.2, 1.1)) + 20, f"{rng.getrandbits(256):064x}"
        result = self._result(is_attack, "messages[0].content" if is_chat else "text", chars, sha256)
        overhead_us = int(250 + chars * 0.35 + rng.expovariate(1 / 220))
        row = TrafficRow(
            id=time.new("trf"),
            occurred_at=at,
            request_id=caller.context.request_id,
            operation="chat.completions" if is_chat else "shield.scan",
            direction=None if is_chat else direction,
            principal_id=caller.principal.id,
            key_prefix=caller.principal.key_prefix,
            agent=agent.name,
            verdict=result.verdict.value,
            score=result.score,
            detections=tuple(described(result.detections, direction)),
            text_sha256=sha256,
            text_chars=chars,
            overhead_us=overhead_us,
            elapsed_us=overhead_us,
        )
        if is_chat:
            row = self._answered(row, agent.model)
            seen: dict[str, Any] = {"occurred_at": at, "model": row.model, "tools": agent.tools}
            self._discovery.record_sighting(tx, Sighting(name=agent.name, source=AgentSource.TRAFFIC, **seen), caller)
        self._store.traffic.insert(tx, row)
        if result.verdict is not Verdict.ALLOW:
            origin = "chat.inbound" if is_chat else "shield.scan"
            self._alerts.raise_from_scan(tx, result, caller=caller, origin=origin, occurred_at=at, direction=direction)
            self._log_finding(tx, row, caller)
        if result.verdict is Verdict.BLOCK:
            self._blocks_at.append(at)

    def _answered(self, row: TrafficRow, model: _Model) -> TrafficRow:
        """Return the row of a chat as its provider answered it."""
        rng = self._rng
        row = replace(row, model=model.name, provider=model.provider)
        if row.verdict == Verdict.BLOCK:
            return replace(row, status=400, action="blocked")
        is_down = model.provider == _OUTAGE and row.occurred_at in self._outage
        if is_down or rng.random() < 0.002:
            return replace(row, status=502, elapsed_us=row.overhead_us + int(rng.uniform(1e6, 5e6)))
        prompt_tokens, reply_tokens = row.text_chars // 4 + 12, int(rng.lognormvariate(4.6, 0.8)) + 1
        upstream_us = rng.lognormvariate(math.log(model.latency_ms * 1000), 0.45) + reply_tokens * 900
        return replace(
            row,
            prompt_tokens=prompt_tokens,
            reply_tokens=reply_tokens,
            cost_microusd=model.price.cost_microusd(prompt_tokens, reply_tokens),
            elapsed_us=row.overhead_us + int(upstream_us),
        )

    def _result(self, is_attack: bool, place: str, chars: int, sha256: str) -> ScanResult:
        """Make up what the shield found in a text: an attack, and else rarely noise."""
        rng = self._rng
        is_noise = not is_attack and rng.random() < 0.015
        is_attack = is_attack or (is_noise and rng.random() < 0.1)
        grave = (Severity.CRITICAL, Severity.HIGH)
        found = [replace(_MODEL, severity=rng.choice(grave))] if is_attack else []
        weights, severities = (_ATTACK, tuple(Severity)) if is_attack else (_NOISE, (Severity.MEDIUM, Severity.LOW))
        count = rng.randint(1, 3) if is_attack else int(is_noise)
        for category in rng.choices([*weights], [*weights.values()], k=count):
            rules = [one for one in self._rules if one.category == category and one.severity in severities]
            # A few rules match again and again, most of them hardly ever.
            found += rules[int(rng.expovariate(0.5)) :][:1]
        starts = rng.choices(range(chars - 12), k=len(found))
        return judge(
            replace(one, start=start, end=start + 12, place=place, chars=chars, sha256=sha256)
            for one, start in zip(found, starts, strict=True)
        )

    def _log_finding(self, tx: Transaction, row: TrafficRow, caller: Caller) -> None:
        is_chat, is_refused = row.model is not None, row.action == "blocked"
        action = f"shield_scan_{row.verdict.lower()}"
        if is_chat:
            action = "chat_blocked" if is_refused else "chat_completed"
        self._core.audit.append_change(
            tx, action, caller, "model" if is_chat else "text", row.model, source="chat" if is_chat else "shield",
            outcome="refused" if is_refused else "success", reason="content_policy_violation" if is_refused else None,
            details={"verdict": row.verdict, "score": row.score, "detections": list(row.detections)},
        )  # fmt: skip

    def _write_guesses(self, tx: Transaction) -> None:
        """Refuse a series of guessed API keys, and raise the alert of it."""
        for _ in range(_GUESSES):
            self._time.at += 100
            self._core.audit.append_change(
                tx, "api_key_refused", self._caller(stranger("key"), _GUESSER), "api_key", None, source="auth",
                outcome="refused", reason="invalid_api_key",
            )  # fmt: skip
        evidence = {"ip": _GUESSER, "refused": _GUESSES}
        self._alerts.raise_event(tx, **GUESSES, subject=_GUESSER, occurred_at=self._time.at, evidence=(evidence,))

    async def _make_budgets(self, day: TrafficSummary) -> None:
        """Make the budgets that the day has spent from. One of them is nearly used up."""
        service = Budgets(self._core, spending=Spending(self._core, alerts=self._alerts))
        first = self._models[0].provider
        by_provider = {one.value: one.cost_microusd for one in day.top["providers"]}
        tokens = day.totals.prompt_tokens + day.totals.reply_tokens
        for name, provider, unit, spent, limit in (
            ("all providers", None, BudgetUnit.USD, day.totals.cost_microusd, 2 * day.totals.cost_microusd / MICRO),
            (first, first, BudgetUnit.USD, by_provider.get(first, 0), 1.1 * by_provider.get(first, 0) / MICRO),
            ("tokens of a day", None, BudgetUnit.TOKENS, tokens, 4 * tokens),
        ):
            new = WantedBudget(
                name=name, scope=BudgetScope.PROVIDER if provider else BudgetScope.GLOBAL, scope_value=provider,
                unit=unit, limit=limit or 1, window=BudgetWindow.MONTH, action=BudgetAction.WARN,
            )  # fmt: skip
            made = await service.create(self._caller(), new)
            spend = partial(self._store.budgets.spend, budget=made.budget, begins_at=made.period.begins_at)
            await self._store.db.write(partial(spend, amount=spent))

    async def _handle_alerts(self) -> None:
        """Let people work on some of the alerts."""
        alerts = (await self._alerts.page(AlertFilter(scope="active", limit=500))).items
        for number, alert in enumerate(reversed(alerts)):
            if number % 8 in _HANDLED:
                status, note = _HANDLED[number % 8]
                until_at = self._until_at + 7 * DAY_MS if status is AlertStatus.SUPPRESSED else None
                wanted = WantedAlert(status=status, note=note, suppressed_until_at=until_at)
                await self._alerts.change(self._caller(number), alert.id, wanted)

    def _caller(self, who: Principal | int = 0, ip: str = "192.0.2.2", agent: str | None = None) -> Caller:
        """Return a caller with a new request. who: also the number of one of the people."""
        principal = _PEOPLE[who % len(_PEOPLE)] if isinstance(who, int) else who
        return Caller(principal, RequestContext(request_id=self._time.new("req"), ip=ip, agent=agent))

    def _report(self, day: TrafficSummary, tx: Transaction) -> DemoReport:
        store = self._store
        return project(
            DemoReport,
            day.totals,
            seed=self._seed,
            since_at=self._begin_at,
            until_at=self._until_at,
            agents=store.agents.count(tx),
            keys=len(self._keys),
            providers=len(store.providers.all(tx)),
            alerts=store.alerts.count(tx),
            audit_events=store.audit.head(tx, store.instance_id).seq,
        )


def _busy(at: int) -> float:
    """Return how much traffic there is at a time: most in the early afternoon (UTC), a tenth of it at night."""
    return 5.5 - 4.5 * math.cos((at / _HOUR_MS - 2) / 24 * math.tau)
