"""A made-up day of a made-up company: who called which model when, and what the shield made of it. Pure, by a seed.

Nothing here is anybody's: names are invented, no text exists behind the hashes, and prices are round numbers. One seed
and one end of the day always tell the same story.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.domain.paging import id_at
from gateway.domain.prices import Price
from gateway.domain.traffic import DEMO, TrafficRow
from gateway.shield.detections import Detection, ScanResult, Severity, Verdict
from gateway.shield.scoring import POINTS, judge

DAY_MS = 86_400_000
MINUTE_MS = 60_000
_CALLS = "chat.completions"
_SCANS = "shield.scan"


@dataclass(frozen=True, slots=True)
class DemoAgent:
    """One agent. weight: its share of the requests. key: index of the one it calls with. is_registered: or unknown."""

    name: str
    role: str
    owner: str
    weight: float
    key: int
    model: str
    tools: tuple[str, ...]
    is_registered: bool


@dataclass(frozen=True, slots=True)
class DemoProvider:
    """One provider. latency_ms: the median time it takes; models: what it serves and for how much."""

    name: str
    latency_ms: float
    models: Mapping[str, Price]


@dataclass(frozen=True, slots=True)
class DemoRule:
    """A rule of the shield that may have matched."""

    id: str
    name: str
    category: str
    severity: Severity
    description: str


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """One request: its row, who made it, and what was found in it."""

    row: TrafficRow
    agent: DemoAgent
    result: ScanResult


PROVIDERS = (
    DemoProvider(
        "aurora", 900.0, {"aurora-large": Price(3_000_000, 15_000_000), "aurora-mini": Price(250_000, 1_250_000)}
    ),
    DemoProvider("borealis", 620.0, {"borealis-2": Price(1_000_000, 4_000_000)}),
    DemoProvider("local-lab", 240.0, {"lab-8b": Price(0, 0)}),
)
KEYS = (
    "web-assistant", "support-desk", "code-review", "search", "analytics", "marketing", "hr-portal", "data-pipeline",
    "mobile-app", "partner-api", "research", "night-jobs",
)  # fmt: skip
_TEAMS = (
    "platform",
    "support",
    "engineering",
    "search",
    "analytics",
    "marketing",
    "people",
    "data",
    "mobile",
    "partners",
    "research",
    "operations",
)
_JOBS = (
    ("assistant", "answers visitors", ("search_docs",)),
    ("triage", "sorts tickets", ("read_ticket", "set_label")),
    ("reviewer", "reads changes", ("read_file", "post_comment")),
    ("indexer", "summarizes pages", ("fetch_url",)),
    ("reporter", "writes reports", ("run_query", "send_mail")),
    ("translator", "translates texts", ()),
    ("planner", "plans shifts", ("read_calendar",)),
)  # fmt: skip
_MODELS = tuple((provider, model) for provider in PROVIDERS for model in provider.models)
AGENT_COUNT = 40
_HOURS = (2, 1.5, 1.2, 1, 1, 1.4, 2.5, 4.5, 7, 9, 10, 9.5, 8, 8.8, 9.6, 9.2, 8, 6.5, 5, 4.2, 3.8, 3.4, 3, 2.5)
"""How busy each hour of the day (UTC) is."""
_NOISE = (("pii", 5), ("secret", 2), ("injection", 2), ("encoding", 1), ("social_engineering", 1))
_ATTACK = (("injection", 6), ("jailbreak", 4), ("extraction", 3), ("tool_abuse", 2), ("exfiltration", 2))
_GRAVE = (Severity.CRITICAL, Severity.HIGH)


def dice(seed: int) -> random.Random:
    """Return what rolls the story of a seed."""
    return random.Random(seed)  # noqa: S311  # a story, not a secret


def agents_of(seed: int) -> tuple[DemoAgent, ...]:
    """Return the forty agents of a seed; every fifth was never registered."""
    rng = dice(seed)
    agents = []
    for number in range(AGENT_COUNT):
        key = number % len(KEYS)
        job, role, tools = _JOBS[(number * 3 + key) % len(_JOBS)]
        model = _MODELS[rng.choices(range(len(_MODELS)), (2, 5, 3, 2))[0]][1]
        name = f"{_TEAMS[key]}-{job}" + ("" if number < len(KEYS) else f"-{number // len(KEYS) + 1}")
        weight = 1.0 / (1 + number) ** 0.7
        agents.append(DemoAgent(name, role, _TEAMS[key], weight, key, model, tools, number % 5 != 4))
    return tuple(agents)


class DemoDay:
    """The requests of the day that ends at `until_at`, in the order of their time.

    rules: those of the shield, by whose ids, names and severities things are found. Three things happen: an agent is
    talked into attacks for half an hour, a provider is down for as long, and somebody tries keys out.
    """

    def __init__(self, *, seed: int, until_at: int, requests: int, rules: Sequence[DemoRule]) -> None:
        self.agents = agents_of(seed)
        self._rng = dice(seed + 1)
        self._until_at = until_at
        self._requests = requests
        self._by_category: dict[str, list[DemoRule]] = {}
        for rule in rules:
            self._by_category.setdefault(rule.category, []).append(rule)
        self.begin_at = until_at - DAY_MS
        self.attack_at = until_at - 5 * 60 * MINUTE_MS
        self.outage_at = self._busiest_before(self.attack_at)
        self.guesses_at = until_at - 3 * 60 * MINUTE_MS
        self._weights = [agent.weight for agent in self.agents]

    def requests(self) -> Iterator[DemoRequest]:
        """Return every request of the day."""
        for at in sorted(self._times()):
            yield self._request(at)

    def _times(self) -> list[int]:
        rng = self._rng
        minutes = [self.begin_at + number * MINUTE_MS for number in range(24 * 60)]
        weights = [self._busy(at) for at in minutes]
        chosen = rng.choices(minutes, weights, k=self._requests)
        return [at + rng.randrange(MINUTE_MS) for at in chosen]

    def _busy(self, at: int) -> float:
        hour = at / 3_600_000 % 24
        low, share = int(hour), hour % 1
        busy = _HOURS[low] * (1 - share) + _HOURS[(low + 1) % 24] * share
        return busy * (1.6 if self._is_attacked(at) else 1.0)

    def _busiest_before(self, at: int) -> int:
        """Return when, of the whole hours from 15 to 1 before `at`, most is asked: an outage at night goes unseen."""
        return max((at - hours * 60 * MINUTE_MS for hours in range(15, 0, -1)), key=self._busy)

    def is_down(self, provider: str, at: int) -> bool:
        """Tell whether a provider answers nothing at a time."""
        return provider == "borealis" and 0 <= at - self.outage_at < 30 * MINUTE_MS

    def _is_attacked(self, at: int) -> bool:
        return 0 <= at - self.attack_at < 30 * MINUTE_MS

    def _request(self, at: int) -> DemoRequest:
        rng = self._rng
        is_attack = self._is_attacked(at) and rng.random() < 0.25
        agent = self.agents[1] if is_attack else rng.choices(self.agents, self._weights)[0]
        is_chat = rng.random() < 0.85
        chars = int(rng.lognormvariate(6.2, 1.1)) + 20
        digest = f"{rng.getrandbits(256):064x}"
        found = self._found(is_attack, chars, "messages[0].content" if is_chat else "text")
        result = judge(replace(one, sha256=digest, chars=chars) for one in found)
        verdict = result.verdict
        overhead_us = int(250 + chars * 0.35 + rng.expovariate(1 / 220))
        row = (
            self._chat(at, agent, verdict, chars, overhead_us)
            if is_chat
            else self._scan(at, agent, verdict, overhead_us)
        )
        values: dict[str, Any] = {
            "id": self._id("trf", at), "occurred_at": at, "request_id": self._id("req", at),
            "principal_id": f"key:{agent.key}", "agent": agent.name, "verdict": verdict.value, "score": result.score,
            "text_sha256": digest, "text_chars": chars, "overhead_us": overhead_us,
            "origin": DEMO,
        }  # fmt: skip
        return DemoRequest(TrafficRow(**(values | row)), agent, result)

    def _scan(self, at: int, agent: DemoAgent, verdict: Verdict, overhead_us: int) -> dict[str, object]:
        direction = "inbound" if self._rng.random() < 0.7 else "outbound"
        return {"operation": _SCANS, "direction": direction, "elapsed_us": overhead_us}

    def _chat(self, at: int, agent: DemoAgent, verdict: Verdict, chars: int, overhead_us: int) -> dict[str, object]:
        rng = self._rng
        provider = next(one for one in PROVIDERS if agent.model in one.models)
        row: dict[str, object] = {"operation": _CALLS, "model": agent.model, "provider": provider.name}
        if verdict is Verdict.BLOCK:
            return row | {"status": 400, "action": "blocked", "elapsed_us": overhead_us}
        if self.is_down(provider.name, at) or rng.random() < 0.002:
            return row | {"status": 502, "elapsed_us": overhead_us + int(rng.uniform(1e6, 5e6))}
        prompt_tokens = chars // 4 + 12
        reply_tokens = int(rng.lognormvariate(4.6, 0.8)) + 1
        took_us = rng.lognormvariate(math.log(provider.latency_ms * 1000), 0.45) + reply_tokens * 900
        return row | {
            "status": 200,
            "prompt_tokens": prompt_tokens,
            "reply_tokens": reply_tokens,
            "cost_microusd": provider.models[agent.model].cost_microusd(prompt_tokens, reply_tokens),
            "elapsed_us": overhead_us + int(took_us),
        }

    def _found(self, is_attack: bool, chars: int, place: str) -> tuple[Detection, ...]:
        """Make up what was found in a text of so many characters, which stood at `place`."""
        rng = self._rng
        if is_attack:
            return self._matches(_ATTACK, rng.randint(1, 3), chars, place, is_grave=True)
        chance = rng.random()
        if chance < 0.0015:
            return self._matches(_ATTACK, rng.randint(1, 2), chars, place, is_grave=True)
        return self._matches(_NOISE, 1, chars, place, is_grave=False) if chance < 0.015 else ()

    def _matches(
        self, kinds: Sequence[tuple[str, int]], count: int, chars: int, place: str, *, is_grave: bool
    ) -> tuple[Detection, ...]:
        rng = self._rng
        found: dict[str, Detection] = {}
        for category in rng.choices([name for name, _ in kinds], [weight for _, weight in kinds], k=count):
            known = self._by_category.get(category, [])
            fitting = [rule for rule in known if (rule.severity in _GRAVE) is is_grave] or known
            if not fitting:
                continue
            # A few rules are met again and again, the others hardly ever.
            rule = fitting[min(int(rng.expovariate(0.5)), len(fitting) - 1)]
            length = rng.randint(8, min(60, chars))
            begin = rng.randrange(chars - length + 1)
            found[rule.id] = Detection(
                rule=rule.id,
                name=rule.name,
                category=rule.category,
                severity=rule.severity,
                description=rule.description,
                matched="",
                confidence=0.9,
                score=POINTS[rule.severity],
                count=1,
                start=begin,
                end=begin + length,
                view=rng.choices(("normalized", "text", "base64"), (8, 2, 1))[0],
                place=place,
            )
        return tuple(found.values())

    def _id(self, prefix: str, at: int) -> str:
        return id_at(prefix, (at, self._rng.getrandbits(40), self._rng.getrandbits(40)))
