"""Records as text, for assistants that read no structured output: one line a record. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence

from gateway.domain.alerts import Alert
from gateway.domain.audit import AuditEvent
from gateway.domain.paging import MOST_COUNTED
from gateway.domain.posture import Check, CheckStatus
from gateway.mcp.tool import one_line
from gateway.shield.detections import Detection, Severity
from gateway.strict_json import write_time

_MOST_DETECTIONS = 5


def counted(what: str, shown: int, total: int | None) -> str:
    """Return the head of a list. total: how many match, None for more than `MOST_COUNTED`."""
    if total == 0:
        return f"No {what} matches."
    if shown == total:
        return f"{shown} {what if shown == 1 else what + 's'}, newest first:"
    whole = f"more than {MOST_COUNTED}" if total is None else str(total)
    return f"{shown} of {whole} {what}s, newest first; more with `limit`:"


def detection_line(detection: Detection) -> str:
    """Return the line of one detection of a scan."""
    line = (
        f"- {detection.name} ({detection.rule}): {detection.severity.value}, {detection.category}, "
        f"score {detection.score}, matched {_quoted(detection.matched)} at {detection.start}-{detection.end}"
    )
    place = f" of {one_line(detection.place)}" if detection.place else ""
    return line + place + (f", accepted by {detection.accepted}" if detection.accepted else "")


def alert_line(alert: Alert) -> str:
    """Return the line of one alert: its subject, its source, and its newest evidence."""
    newest: Mapping[str, object] = alert.evidence[-1] if alert.evidence else {}
    facts = _facts(
        rule=alert.rule, score=newest.get("score"), agent=alert.agent, key=alert.key_prefix, request=alert.request_id
    )
    seen = f"seen {alert.count} times, last {write_time(alert.last_seen_at)}"
    line = f"- {alert.id} {alert.severity.value} {alert.status.value}: {one_line(alert.title)} ({facts}; {seen})"
    found = _found(newest)
    return f"{line} Found: {found}" if found else line


def event_line(event: AuditEvent) -> str:
    """Return the line of one audit event: actor, action, resource, origin, and the findings of a scan."""
    outcome = event.outcome if event.reason is None else f"{event.outcome}, {one_line(event.reason)}"
    about = f"{event.resource_type} {one_line(event.resource_id)}" if event.resource_id else ""
    details = event.details
    facts = _facts(
        verdict=details.get("verdict"),
        score=details.get("score"),
        budget=details.get("budget"),
        entry=details.get("access_entry"),
        direction=event.direction,
        agent=event.agent,
        key=event.key_prefix,
        address=event.ip,
        request=event.request_id,
    )
    line = f"- {write_time(event.occurred_at)} {one_line(event.action)} by {one_line(event.actor)}: {outcome}"
    facts = ", ".join(part for part in (about, facts) if part)
    found = _found(details)
    return line + (f" ({facts})" if facts else "") + (f" Found: {found}" if found else "")


def check_lines(checks: Iterable[Check], *, with_category: bool = False) -> list[str]:
    """Return a line for each check that failed or warned, failures first and by severity."""
    wanting = [check for check in checks if check.status in (CheckStatus.FAIL, CheckStatus.WARN)]
    return [
        f"- {check.status.value} ({check.severity.value}{f', {check.category}' if with_category else ''}): "
        f"{check.title}. Seen: {check.evidence}. {check.fix}"
        for check in sorted(wanting, key=lambda check: (check.status.value, tuple(Severity).index(check.severity)))
    ]


def _facts(**facts: object) -> str:
    return ", ".join(f"{name} {one_line(str(value))}" for name, value in facts.items() if value not in (None, ""))


def _found(evidence: Mapping[str, object]) -> str:
    """Return rule, score and masked match of a record's detections; a chat has those of the prompt and the reply."""
    detections: list[tuple[Mapping[str, object], str]] = []
    for part, where in ((evidence, ""), (evidence.get("inbound"), ""), (evidence.get("outbound"), " in the reply")):
        kept = part.get("detections") if isinstance(part, Mapping) else None
        detections += [(one, where) for one in kept if isinstance(one, Mapping)] if isinstance(kept, Sequence) else []
    text = ", ".join(_found_one(one) + where for one, where in detections[:_MOST_DETECTIONS])
    return text + (f" and {len(detections) - _MOST_DETECTIONS} more" if len(detections) > _MOST_DETECTIONS else "")


def _found_one(detection: Mapping[str, object]) -> str:
    rule = f"{one_line(str(detection.get('rule')))} (score {detection.get('score')})"
    matched = detection.get("matched")
    return f"{rule} {_quoted(matched)}" if isinstance(matched, str) else rule


def _quoted(text: str) -> str:
    return json.dumps(one_line(text), ensure_ascii=False)
