"""What a turn of chat is told of: each direction that somebody has to look at, and what was not allowed."""

from dataclasses import replace

from gateway.domain.alerts import AlertSource
from gateway.domain.traffic import TrafficRow
from gateway.errors import AccessDenied
from gateway.services.alerts import Alerts
from gateway.services.chat_turn import PROVIDER_KEY_RULE, Turn
from gateway.shield.detections import Direction, Severity, Verdict
from gateway.store.database import Transaction


def raise_alerts(alerts: Alerts, tx: Transaction, turn: Turn, row: TrafficRow) -> None:
    """Raise one alert for each direction in which something has to be looked at, and for what is not allowed."""
    steps = [
        (Direction.INBOUND, turn.inbound, turn.told_inbound),
        (Direction.OUTBOUND, turn.outbound, turn.told_outbound),
    ]
    found = [(way, step, told) for way, step, told in steps if step and step.result.verdict is not Verdict.ALLOW]
    if not found and turn.failure != AccessDenied.code and not turn.has_key:
        return
    context = replace(turn.context, agent=turn.agent())
    if turn.has_key:
        alerts.raise_event(
            tx,
            source=AlertSource.PROVIDER,
            rule=PROVIDER_KEY_RULE,
            severity=Severity.HIGH,
            title=f"Provider {row.provider} repeats its API key",
            description="An answer held the key that the gateway sends. It was masked; consider another key.",
            subject=row.provider or "",
            occurred_at=row.occurred_at,
            context=context,
            principal=turn.principal,
            evidence=({"request_id": context.request_id, "provider": row.provider},),
        )
    if turn.failure == AccessDenied.code:
        alerts.raise_event(
            tx,
            source=AlertSource.ACCESS,
            rule="access-denied",
            severity=Severity.MEDIUM,
            title="A chat was refused access",
            description="It asked for a model, provider, tool or domain, or came by an agent, that is not allowed.",
            subject=f"{turn.principal.id} {turn.denied_by or 'limits'}",
            occurred_at=row.occurred_at,
            context=context,
            principal=turn.principal,
            evidence=({"request_id": context.request_id, "access_entry": turn.denied_by},),
        )
    for direction, step, told in found:
        alerts.raise_from_scan(
            tx,
            step.result,
            principal=turn.principal,
            context=context,
            origin=f"chat.{direction}",
            occurred_at=row.occurred_at,
            direction=direction,
            told=told(),
        )
