"""What an operator has set of a rule otherwise than the rule file says. Pure."""

from dataclasses import dataclass

from gateway.shield.detections import Severity

MAX_REASON_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOverride:
    """How one rule holds here.

    enabled: False takes it out of every scan. severity: in place of the file's, None for that. reason: what was said.
    """

    rule: str
    enabled: bool
    severity: Severity | None
    reason: str | None
    changed_at: int
    changed_by: str
    version: int = 1
