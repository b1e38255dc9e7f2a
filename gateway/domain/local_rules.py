"""An operator's own rules in the database, and a captured text on which a draft is tried. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.domain.policies import Capture
from gateway.shield.detections import Direction


@dataclass(frozen=True, slots=True)
class LocalRule:
    """One version of a stored rule. rule: as a rule file has it, None in a version that removes it."""

    id: str
    version: int
    rule: Mapping[str, object] | None
    reason: str
    changed_at: int
    changed_by: str


@dataclass(frozen=True, slots=True)
class ReplayText:
    """A captured text. policy: the id of the policy that the key of its request has now."""

    traffic_id: str
    direction: Direction
    mode: Capture
    text: str
    captured_at: int
    request_id: str
    policy: str | None
