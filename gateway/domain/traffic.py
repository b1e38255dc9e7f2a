"""One row for each request that passed the shield, and the filter over them. No text: its hash and length stand for it.

A row has an origin. What was made up to show the gateway is `DEMO`; it lies in a data folder of its own, and no number
ever counts rows of two origins together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.records import record
from gateway.shield.detections import Verdict

PRODUCTION = "production"
DEMO = "demo"
ORIGINS = (PRODUCTION, DEMO)
MAX_TRAFFIC_LIMIT = 500
DEFAULT_TRAFFIC_LIMIT = 100

Origin = Literal["production", "demo"]


@record
class TrafficRow:
    """What one scan or completion was.

    occurred_at: Unix milliseconds. operation: ``shield.scan`` or ``chat.completions``. status: of the answer.
    principal_id: `key_…`, `usr_…` or a local program's name. detections: JSON objects of rule, start, end, count.
    action: ``none``, ``redacted``, ``observed`` or ``blocked``. elapsed_us, overhead_us: microseconds, the second is
    the gateway's own share. text_sha256, text_chars: of the one text with the strongest finding; where
    nothing was found, of the texts of the messages, joined by line breaks. origin: empty until the store has
    filled in its own.
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
class TrafficFilter:
    """Which rows to list, newest first. None means any; no origin means that of the data folder.

    key: the prefix of a key or a principal's id. rule: that matched. search: found without regard to ASCII case in
    agent, key, model, provider, request id, rules or the hash of the text. since, until: Unix milliseconds, both
    included.
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
    search: str | None = None
    since: int | None = None
    until: int | None = None
    limit: int = DEFAULT_TRAFFIC_LIMIT
    cursor: str | None = None
