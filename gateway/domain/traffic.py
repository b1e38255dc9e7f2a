"""The record of each request that passed the shield, and the filter over records. No text: its hash and length only.

A row has an origin. Sample data has the origin `DEMO` and its own data folder. No figure combines rows of two origins.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.domain.paging import PageQuery
from gateway.shield.detections import Direction, Verdict

PRODUCTION = "production"
DEMO = "demo"
ORIGINS = (PRODUCTION, DEMO)
MAX_TRAFFIC_LIMIT = 500

Origin = Literal["production", "demo"]


@dataclass(frozen=True, slots=True)
class TrafficRow:
    """One scan or completion.

    occurred_at: Unix milliseconds. operation: ``shield.scan`` or ``chat.completions``. status: the HTTP status.
    principal_id: `key_…`, `usr_…` or the name of a local program. detections: JSON objects of rule, start, end, count.
    action: ``none``, ``redacted``, ``observed`` or ``blocked``. elapsed_us, overhead_us: the total and the share of the
    gateway, in microseconds. text_sha256, text_chars: of the text with the strongest detection, or without detections,
    of all messages joined by line breaks. origin: empty until the store adds its own.
    """

    id: str
    occurred_at: int
    request_id: str
    operation: str
    principal_id: str
    verdict: str
    score: int
    key_prefix: str | None = None
    agent: str | None = None
    model: str | None = None
    provider: str | None = None
    direction: str | None = None
    action: str = "none"
    status: int = 200
    detections: tuple[Mapping[str, object], ...] = ()
    text_sha256: str | None = None
    text_chars: int = 0
    prompt_tokens: int | None = None
    reply_tokens: int | None = None
    cost_microusd: int | None = None
    elapsed_us: int = 0
    overhead_us: int = 0
    instance_id: str | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficFilter(PageQuery):
    """The rows to list, newest first. None matches all; origin None means the origin of the data folder.

    key: the prefix of a key or the id of a principal. search: in agent, key, model, provider, request id, rules or the
    hash of the text; ASCII case does not matter. since, until: Unix milliseconds, both inclusive.
    """

    verdict: Verdict | None = None
    key: str | None = None
    agent: str | None = None
    model: str | None = None
    provider: str | None = None
    operation: str | None = None
    status: int | None = None
    origin: Origin | None = None
    request_id: str | None = None
    rule: str | None = None
    category: str | None = None
    direction: Direction | None = None
    search: str | None = None
    since: int | None = None
    until: int | None = None
