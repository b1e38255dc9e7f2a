"""A request that was harmless: what can be done about it, and what each exception would let through. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from gateway.domain.alerts import Alert, RequestAlert
from gateway.domain.risk_acceptances import AcceptanceScope, NewVerdict
from gateway.field_types import UntilIn90Days, line
from gateway.shield.detections import Verdict

_Note = Annotated[str, line(500), "Why the request is harmless."]
_Until = Annotated[UntilIn90Days, "The end of the exception, 30 days from now if left out."]


class Exemption(StrEnum):
    """What passes from now on, from narrow to wide; or nothing; or a report that the rule is wrong."""

    NONE = "none"
    TEXT = "text"
    KEY_AGENT = "key_agent"
    KEY = "key"
    POLICY = "policy"
    REPORT = "report"


SCOPES: Mapping[Exemption, AcceptanceScope] = {
    Exemption.TEXT: AcceptanceScope.FINDING,
    Exemption.KEY_AGENT: AcceptanceScope.RULE_AGENT,
    Exemption.KEY: AcceptanceScope.RULE_KEY,
    Exemption.POLICY: AcceptanceScope.RULE_POLICY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkHarmless:
    """Which request was harmless (`req_…`, `trf_…`, or `alr_…` for the newest of an alert), why, and the exception."""

    id: str
    note: _Note
    exception: Exemption = Exemption.NONE
    until_at: _Until | None = field(default=None, metadata={"json_name": "until"})


@dataclass(frozen=True, slots=True)
class MarkedHarmless:
    """What was done. alerts: those that were closed. acceptances: ids; in force, or proposed if `is_proposed`.

    report: id of the alert that asks for a better rule. new_verdict: of the request, once the exception is in force.
    says: the same in words.
    """

    request_id: str
    alerts: tuple[Alert, ...]
    acceptances: tuple[str, ...]
    is_proposed: bool
    report: str | None
    new_verdict: NewVerdict | None
    says: str


@dataclass(frozen=True, slots=True)
class Passed:
    """Another request that would have a lower verdict under an exception."""

    request_id: str
    occurred_at: int
    agent: str | None
    key_prefix: str | None
    verdict: str
    new_verdict: Verdict


@dataclass(frozen=True, slots=True)
class LetThrough:
    """What an exception would have changed in the last `days`, for other requests than this one.

    judged: flagged requests that were judged again; `is_partial` if there were more. unknown: those of them that the
    exception covers and whose new verdict only their text would tell. lowered: those with a lower verdict. unblocked:
    those of them that were blocked and would pass. confirmed: those whose alert a person acknowledged, investigated or
    resolved. examples: the newest.
    """

    days: int
    judged: int
    is_partial: bool
    unknown: int
    lowered: int
    unblocked: int
    confirmed: int
    examples: tuple[Passed, ...]


@dataclass(frozen=True, slots=True)
class SuiteLoss:
    """Attacks of the validation suite that are found now, and those of them that would not be any more."""

    found: int
    lost: int


@dataclass(frozen=True, slots=True)
class ExceptionOption:
    """One possible exception. unavailable: why it cannot be made. covers: what it holds for, in words.

    rules: that it would accept. suite: None for one text, which no case of the suite has.
    """

    exception: Exemption
    unavailable: str | None
    covers: str
    rules: tuple[str, ...] = ()
    new_verdict: NewVerdict | None = None
    lets_through: LetThrough | None = None
    suite: SuiteLoss | None = None


@dataclass(frozen=True, slots=True)
class HarmlessPreview:
    """A request that may be harmless, its alerts, and the exceptions that can be made.

    may_approve: whether the caller's exception holds at once; otherwise it is proposed.
    """

    request_id: str
    verdict: str
    score: int
    agent: str | None
    key_prefix: str | None
    occurred_at: int
    alerts: tuple[RequestAlert, ...]
    may_approve: bool
    options: tuple[ExceptionOption, ...]
