"""One made-up day of traffic of a made-up company. Pure: the same seed and end of day always give the same requests.

All names are invented: those in `demo.json`, with prices as round numbers. No text exists behind the hashes. Three
incidents happen: an attacker takes over one agent for half an hour, a provider is down for as long, and somebody tries
to guess API keys.
"""

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gateway import bundle
from gateway.domain.prices import Price
from gateway.domain.traffic import DEMO, TrafficRow
from gateway.shield.detections import Detection, ScanResult, Severity, Verdict
from gateway.shield.scoring import MODEL_RULE, judge

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
AGENT_COUNT = 40
OUTAGE = "borealis"
"""The provider that fails for half an hour."""
_INCIDENT_MS = HOUR_MS // 2
_NOISE = {"pii": 5, "secret": 2, "injection": 2, "encoding": 1, "social_engineering": 1}
_ATTACK = {"injection": 6, "jailbreak": 4, "extraction": 3, "tool_abuse": 2, "exfiltration": 2}
_MODEL = Detection(MODEL_RULE, "Resembles known attacks", "injection", Severity.HIGH, "Its words are those of attacks.")


@dataclass(frozen=True, slots=True)
class DemoProvider:
    """One provider. latency_ms: the median time of an answer. models: its models with their prices."""

    name: str
    latency_ms: float
    models: Mapping[str, Price]


@dataclass(frozen=True, slots=True)
class DemoAgent:
    """One agent. key: index into `KEYS` of the key it calls with. is_registered: false if only its traffic shows it."""

    name: str
    owner: str
    role: str
    key: int
    provider: DemoProvider
    model: str
    tools: tuple[str, ...]
    is_registered: bool


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """One request: its traffic row, still without ids and key, the agent that sent it and what the shield found."""

    row: TrafficRow
    agent: DemoAgent
    result: ScanResult


_MADE_UP = json.loads(bundle.read("gateway/domain/demo.json"))
KEYS: tuple[str, ...] = tuple(_MADE_UP["keys"])
PROVIDERS = tuple(
    DemoProvider(one["name"], one["latency_ms"], {model: Price(**price) for model, price in one["models"].items()})
    for one in _MADE_UP["providers"]
)
_MODELS = tuple((provider, model) for provider in PROVIDERS for model in provider.models)


def seeded(seed: int) -> random.Random:
    """Return the source of random numbers of a seed."""
    return random.Random(seed)  # noqa: S311  # a story, not a secret


def agents_of(seed: int) -> tuple[DemoAgent, ...]:
    """Return the agents of a seed. One in five is not registered."""
    rng = seeded(seed)
    jobs = _MADE_UP["jobs"]
    agents = []
    for number in range(AGENT_COUNT):
        key = number % len(KEYS)
        job = jobs[(number * 3 + key) % len(jobs)]
        provider, model = _MODELS[rng.choices(range(len(_MODELS)), (2, 5, 3, 2))[0]]
        team = KEYS[key].partition("-")[0]
        name = f"{team}-{job['name']}" + ("" if number < len(KEYS) else f"-{number // len(KEYS) + 1}")
        agents.append(DemoAgent(name, team, job["role"], key, provider, model, tuple(job["tools"]), number % 5 != 4))
    return tuple(agents)


class DemoDay:
    """The requests of the day that ends at `until_at`, in order of time.

    rules: one detection for each rule that may match, without a span; the day fills in where it matched.
    """

    def __init__(self, *, seed: int, until_at: int, requests: int, rules: Sequence[Detection]) -> None:
        self.agents = agents_of(seed)
        self._rng = seeded(seed + 1)
        self._requests = requests
        self._rules = rules
        self.begin_at = until_at - DAY_MS
        self.attack_at = until_at - 5 * HOUR_MS
        self.guesses_at = until_at - 3 * HOUR_MS
        # The busiest hour before the attack: nobody would notice an outage at night.
        self.outage_at = max((self.attack_at - hours * HOUR_MS for hours in range(15, 0, -1)), key=_busy)

    def requests(self) -> Iterator[DemoRequest]:
        minutes = range(self.begin_at, self.begin_at + DAY_MS, 60_000)
        weights = [_busy(at) + self._attacks(at) for at in minutes]
        chosen = self._rng.choices(minutes, weights, k=self._requests)
        for at in sorted(minute + self._rng.randrange(60_000) for minute in chosen):
            yield self._request(at)

    def is_down(self, provider: str, at: int) -> bool:
        return provider == OUTAGE and 0 <= at - self.outage_at < _INCIDENT_MS

    def _attacks(self, at: int) -> float:
        """Return how much traffic the attacker adds, in the unit of `_busy`: as much at night as by day."""
        return 3.0 if 0 <= at - self.attack_at < _INCIDENT_MS else 0.0

    def _request(self, at: int) -> DemoRequest:
        rng = self._rng
        is_attack = rng.random() * (_busy(at) + self._attacks(at)) < self._attacks(at)
        weights = [(1 + number) ** -0.7 for number in range(AGENT_COUNT)]
        agent = self.agents[1] if is_attack else rng.choices(self.agents, weights)[0]
        is_chat = rng.random() < 0.85
        chars = int(rng.lognormvariate(6.2, 1.1)) + 20
        digest, place = f"{rng.getrandbits(256):064x}", "messages[0].content" if is_chat else "text"
        found = self._detections(is_attack, chars)
        result = judge(replace(one, sha256=digest, chars=chars, place=place) for one in found)
        overhead_us = int(250 + chars * 0.35 + rng.expovariate(1 / 220))
        row = TrafficRow(
            id="",
            occurred_at=at,
            request_id="",
            operation="chat.completions" if is_chat else "shield.scan",
            direction=None if is_chat else "inbound" if rng.random() < 0.7 else "outbound",
            principal_id="",
            agent=agent.name,
            verdict=result.verdict.value,
            score=result.score,
            text_sha256=digest,
            text_chars=chars,
            overhead_us=overhead_us,
            elapsed_us=overhead_us,
            origin=DEMO,
        )
        return DemoRequest(self._chat(row, agent) if is_chat else row, agent, result)

    def _chat(self, row: TrafficRow, agent: DemoAgent) -> TrafficRow:
        """Return the row of a chat as its provider answered it."""
        rng, provider = self._rng, agent.provider
        row = replace(row, model=agent.model, provider=provider.name)
        if row.verdict == Verdict.BLOCK:
            return replace(row, status=400, action="blocked")
        if self.is_down(provider.name, row.occurred_at) or rng.random() < 0.002:
            return replace(row, status=502, elapsed_us=row.overhead_us + int(rng.uniform(1e6, 5e6)))
        prompt_tokens, reply_tokens = row.text_chars // 4 + 12, int(rng.lognormvariate(4.6, 0.8)) + 1
        upstream_us = rng.lognormvariate(math.log(provider.latency_ms * 1000), 0.45) + reply_tokens * 900
        return replace(
            row,
            prompt_tokens=prompt_tokens,
            reply_tokens=reply_tokens,
            cost_microusd=provider.models[agent.model].cost_microusd(prompt_tokens, reply_tokens),
            elapsed_us=row.overhead_us + int(upstream_us),
        )

    def _detections(self, is_attack: bool, chars: int) -> list[Detection]:
        """Make up what the shield found in a text of `chars` characters: nothing, noise or an attack."""
        rng = self._rng
        if not is_attack:
            if rng.random() >= 0.015:
                return []
            is_attack = rng.random() < 0.1
        weights = _ATTACK if is_attack else _NOISE
        chosen = [replace(_MODEL, severity=rng.choice((Severity.CRITICAL, Severity.HIGH)))] if is_attack else []
        grave = () if is_attack else (Severity.CRITICAL, Severity.HIGH)
        for category in rng.choices([*weights], [*weights.values()], k=rng.randint(1, 3) if is_attack else 1):
            rules = [one for one in self._rules if one.category == category and one.severity not in grave]
            if rules:
                # A few rules match again and again, most of them hardly ever.
                chosen.append(rules[min(int(rng.expovariate(0.5)), len(rules) - 1)])
        found: dict[str, Detection] = {}
        for rule in chosen:
            length = rng.randint(8, min(60, chars))
            start = rng.randrange(chars - length + 1)
            view = rng.choices(("normalized", "text", "base64"), (8, 2, 1))[0]
            found[rule.rule] = replace(rule, start=start, end=start + length, view=view)
        return [*found.values()]


def _busy(at: int) -> float:
    """Return how much traffic there is at a time: most in the early afternoon (UTC), a tenth of it at night."""
    return 5.5 - 4.5 * math.cos((at / HOUR_MS - 2) / 24 * math.tau)
