"""One row for each request that passed the shield. Holds no text: its hash and length stand for it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficRow:
    """What one scan or completion was.

    occurred_at: Unix milliseconds. operation: ``shield.scan`` or ``chat.completions``. status: of the answer.
    principal_id: `key_…`, `usr_…` or a local program's name. detections: JSON objects of rule, start, end, count.
    action: ``none``, ``redacted``, ``observed`` or ``blocked``. elapsed_us, overhead_us: microseconds, the second is
    the gateway's own share. text_sha256, text_chars: of all text that was scanned.
    """

    id: str
    occurred_at: int
    request_id: str
    operation: str
    principal_id: str
    key_prefix: str | None = None
    agent: str | None = None
    model: str | None = None
    provider: str | None = None
    direction: str | None = None
    verdict: str
    score: int
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
