"""Reports: their types and formats, and the parts of a report. Pure: other modules query the data and write it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, cast

from gateway.domain.posture import DAY_MS
from gateway.domain.principals import Permission

Unit = Literal["", "usd", "time", "ms", "percent", "score"]
Shape = Literal["figures", "table", "bars", "lines", "rates"]
Every = Literal["day", "week", "month"]
EVERY_MS = {"day": DAY_MS, "week": 7 * DAY_MS, "month": 30 * DAY_MS}
DEFAULT_PERIOD_MS = 7 * DAY_MS
MAX_REPORTS = 100
KEPT_REPORTS = 200
MAX_PERIOD_MS = 3660 * DAY_MS


class ReportType(StrEnum):
    """The subject of a report."""

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
        return self.value.replace("_", " ").capitalize()


# A report needs the permissions for its data, so that it shows nothing that its reader may not see elsewhere.
REPORT_NEEDS: Mapping[ReportType, frozenset[Permission]] = {
    ReportType.AUDIT_EXPORT: frozenset({Permission.AUDIT_READ}),
    ReportType.COMPLIANCE_EVIDENCE: frozenset({Permission.AUDIT_READ, Permission.USERS_READ}),
    ReportType.ACCESS_REVIEW: frozenset({Permission.API_KEYS_READ, Permission.AUDIT_READ, Permission.USERS_READ}),
}


class ReportFormat(StrEnum):
    """The format of a report."""

    HTML = "html"
    MARKDOWN = "markdown"
    CSV = "csv"
    JSON = "json"


ENDINGS = {one: "md" if one is ReportFormat.MARKDOWN else one.value for one in ReportFormat}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a section. unit: ``time`` is Unix milliseconds, ``percent`` and ``score`` are 0 to 100."""

    name: str
    unit: Unit = ""


def read_columns(named: str) -> tuple[Column, ...]:
    """Return the columns of a text such as ``model, cost:usd``: names, some with a colon and a unit."""
    parts = (text.partition(":") for text in named.split(", "))
    return tuple(Column(name, cast(Unit, unit)) for name, _, unit in parts)


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a report: its rows and their display.

    query: a description of the data, for people. is_current: whether the rows show the present, not the period. is_cut:
    whether there were more rows.
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
    """The content of a report. since_at, until_at: a half-open period in Unix milliseconds.

    origin: of the requests: ``production``, or ``demo`` for sample data. heading: the title.
    """

    heading: str
    type: str
    since_at: int
    until_at: int
    made_at: int
    made_by: str
    instance_id: str
    origin: str
    sections: tuple[Section, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A stored report, without its document. schedule: the id of its schedule, None for a report on request."""

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
    """A recurring report. next_at: when the next one is due. Each covers the interval before it."""

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
    """Return the interval of one point in a chart, chosen so that a chart has at most about 60 points."""
    steps = (3_600_000, 6 * 3_600_000, DAY_MS, 7 * DAY_MS, 30 * DAY_MS)
    return next((step for step in steps if until_at - since_at <= 60 * step), 365 * DAY_MS)


def filled(
    rows: Sequence[Sequence[object]], since_at: int, until_at: int, step: int, *, empty: int | None = 0
) -> tuple[tuple[object, ...], ...]:
    """Return `rows`, which begin with the time of a bucket, with a row of `empty` for each missing bucket."""
    if not rows:
        return ()
    width = len(rows[0]) - 1
    known = {row[0]: tuple(row) for row in rows}
    return tuple(known.get(at, (at, *(empty,) * width)) for at in range(since_at - since_at % step, until_at, step))
