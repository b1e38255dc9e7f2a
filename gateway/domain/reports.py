"""Reports: their types and forms, and what a finished one is made of. Pure: queries and drawing stand elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from gateway.domain.posture import DAY_MS
from gateway.domain.principals import Permission

Unit = Literal["", "usd", "time", "ms", "percent", "score"]
Shape = Literal["figures", "table", "bars", "lines", "rates"]
Every = Literal["day", "week", "month"]
EVERY_MS = {"day": DAY_MS, "week": 7 * DAY_MS, "month": 30 * DAY_MS}
DEFAULT_PERIOD_MS = 7 * DAY_MS
MAX_PERIOD_MS = 3660 * DAY_MS


class ReportType(StrEnum):
    """What a report is about."""

    EXECUTIVE_SUMMARY = "executive_summary"
    SECURITY_POSTURE = "security_posture"
    THREAT_SUMMARY = "threat_summary"
    SHIELD_ANALYSIS = "shield_analysis"
    TRAFFIC_SUMMARY = "traffic_summary"
    COST_ANALYSIS = "cost_analysis"
    AGENT_ACTIVITY = "agent_activity"
    AUDIT_EXPORT = "audit_export"
    COMPLIANCE_EVIDENCE = "compliance_evidence"
    ACCESS_REVIEW = "access_review"
    SHIELD_VALIDATION = "shield_validation"

    @property
    def heading(self) -> str:
        """Its name for people."""
        return self.value.replace("_", " ").capitalize()


# A report shows nobody what its reader may not see elsewhere.
REPORT_NEEDS: Mapping[ReportType, frozenset[Permission]] = MappingProxyType(
    {
        ReportType.AUDIT_EXPORT: frozenset({Permission.AUDIT_READ}),
        ReportType.COMPLIANCE_EVIDENCE: frozenset({Permission.AUDIT_READ, Permission.USERS_READ}),
        ReportType.ACCESS_REVIEW: frozenset(
            {Permission.API_KEYS_READ, Permission.AUDIT_READ, Permission.USERS_READ},
        ),
    }
)


class ReportFormat(StrEnum):
    """How a report is written."""

    HTML = "html"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"


ENDINGS = {
    ReportFormat.HTML: "html",
    ReportFormat.MARKDOWN: "md",
    ReportFormat.CSV: "csv",
    ReportFormat.JSON: "json",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a section. unit: what its numbers are; time is Unix milliseconds, percent and score 0 to 100."""

    name: str
    unit: Unit = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a report: rows, how to show them, and where they come from.

    query: for people, what was counted or listed. is_current: whether the rows are of now and not of the period.
    is_cut: whether there was more than is shown.
    """

    title: str
    shape: Shape
    query: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[object, ...], ...]
    is_current: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportBody:
    """A report before it is written. since_at, until_at: Unix milliseconds, the first included, the second not.

    origin: of the requests: production, or demo for those that were made up.
    """

    type: ReportType
    since_at: int
    until_at: int
    made_at: int
    made_by: str
    instance_id: str
    origin: str
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is kept of a report beside its document. schedule: the id of what made it, None when somebody asked."""

    id: str
    type: ReportType
    format: ReportFormat
    since_at: int = field(metadata={"json_name": "since"})
    until_at: int = field(metadata={"json_name": "until"})
    created_at: int
    created_by: str
    schedule: str | None
    document_bytes: int
    document_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSchedule:
    """A report that makes itself. next_at: when the next is due. Each is about the span that ends with it."""

    id: str
    type: ReportType
    format: ReportFormat
    every: Every
    enabled: bool = True
    next_at: int
    created_at: int
    created_by: str
    version: int = 1


def bucket_ms(since_at: int, until_at: int) -> int:
    """Return how long one point of a chart is: an hour, six, a day or more, so that there are at most about 60."""
    span = until_at - since_at
    for step in (3_600_000, 6 * 3_600_000, DAY_MS, 7 * DAY_MS, 30 * DAY_MS):
        if span <= 60 * step:
            return step
    return 365 * DAY_MS


def filled(
    rows: Sequence[Sequence[object]], since_at: int, until_at: int, step: int, *, empty: int | None = 0
) -> tuple[tuple[object, ...], ...]:
    """Return rows that begin with the time of a bucket, with a row of `empty` for each bucket that has none."""
    if not rows:
        return ()
    width = len(rows[0]) - 1
    known = {row[0]: tuple(row) for row in rows}
    return tuple(known.get(at, (at, *(empty,) * width)) for at in range(since_at - since_at % step, until_at, step))
