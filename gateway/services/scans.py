"""Scan a text for a principal: scan, record, answer.

The record holds a hash of the text. It holds the text itself only where the policy of the key says so, in the form that
`services.captures` makes.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

import anyio

from gateway.domain.policies import KeptText, ShieldPolicy
from gateway.domain.principals import Caller
from gateway.domain.risk_acceptances import Source
from gateway.domain.traffic import TrafficRow
from gateway.errors import InvalidRequest
from gateway.llm.base import Leaf, LeafKind
from gateway.llm.joined import in_text
from gateway.schema import JsonSchema, encode, json_schema
from gateway.services.alerts import Alerts
from gateway.services.captures import Captures
from gateway.services.core import Core, Service
from gateway.services.detector_calls import DetectorCalls
from gateway.services.findings import described, text_at_fault
from gateway.services.policies import Policies
from gateway.services.risk_acceptances import Accept, RiskAcceptances
from gateway.services.scanner import TextScanner
from gateway.settings import MAX_TEXT_CHARS, named
from gateway.shield.detections import Detection, Direction, ScanResult, Verdict
from gateway.store.database import StoreUnavailable, Transaction

CROWD_SECONDS = 1.0
OF_RECORDS = (
    *("place", "spans", "sha256", "chars", "is_spread", "secret"),
    *("effect", "points", "label", "elapsed_ms"),
)
"""Fields of a detection that are recorded, and left out of the answer to the caller, who has the text."""


@dataclass(frozen=True, slots=True)
class ScanText:
    """What a caller asks to have scanned. Nothing in it can lower the protection."""

    text: Annotated[str, "The text to scan."]
    direction: Annotated[
        Direction, "inbound: text on its way to a model (default). outbound: text that comes from one."
    ] = Direction.INBOUND


@dataclass(frozen=True, slots=True)
class ScanStats:
    """How many detections there are, in all and by severity and category."""

    total: int
    critical: int
    high: int
    medium: int
    low: int
    categories: dict[str, int]


@dataclass(frozen=True, slots=True)
class ScanAnswer:
    """The answer of one scan.

    elapsed_ms: the time that the shield took. redacted: the text with matches masked, None if none is.
    """

    verdict: Verdict
    score: int
    detections: tuple[Detection, ...]
    stats: ScanStats
    action: Literal["none", "redacted"]
    elapsed_ms: float
    redacted: str | None

    def data(self) -> dict[str, object]:
        """Return the `data` object of the API. `redacted` is there only when something is masked."""
        data = encode(self) | {"detections": [detection_data(detection) for detection in self.detections]}
        if self.redacted is None:
            del data["redacted"]
        return data


class Scans(Service):
    """The one way to the shield: for the API, the commands, the MCP tools and the chat."""

    alerts: Alerts
    policy: ShieldPolicy
    policies: Policies
    acceptances: RiskAcceptances
    scanner: TextScanner
    detectors: DetectorCalls | None = None
    max_text_chars: int = MAX_TEXT_CHARS

    def __post_init__(self, core: Core) -> None:
        super().__post_init__(core)
        self._captures = Captures(self.scanner.scan, self.clock)

    async def scan(self, caller: Caller, command: ScanText, *, is_recorded: bool = True) -> ScanAnswer:
        """Scan one text. A REVIEW or BLOCK is answered after its audit event and alert are committed.

        is_recorded: False for a text that an operator tries out; it is judged alike and leaves no trace.

        Raises:
            InvalidRequest: the text is too long.
            ShieldUnavailable: the shield failed; nothing may be let through. Shed: it waited too long for its turn.
            AuditUnavailable, Overloaded: what was found could not be recorded.
        """
        policy = self.policies.of(caller.principal, self.policy)
        source = Source(
            caller.context.agent or caller.principal.name, caller.principal.lineage, caller.principal.policy
        )
        accept = self.acceptances.accept_for(source)
        result, elapsed_us = await self._scanned(command, policy, owner=caller.principal.id, accept=accept)
        answer = _answer(result, elapsed_us)
        if not is_recorded:
            return answer
        text, direction = command.text, command.direction
        await self.keep(
            result,
            (_leaf(text),),
            caller,
            direction=direction,
            action=answer.action,
            elapsed_us=elapsed_us,
            captured=await self._captures.of_text(text, direction, policy),
        )
        return answer

    async def rehearse(self, command: ScanText, policy: ShieldPolicy) -> ScanAnswer:
        """Scan one text by another policy and record nothing. Raises what `scan` raises."""
        return _answer(*await self._scanned(command, policy))

    async def _scanned(
        self, command: ScanText, policy: ShieldPolicy, *, owner: str = "", accept: Accept | None = None
    ) -> tuple[ScanResult, int]:
        text = command.text
        if len(text) > self.max_text_chars:
            limit = f"{self.max_text_chars} characters, the limit that {named('max_text_chars')} sets"
            raise InvalidRequest(f"text must be at most {limit}.", param="text")
        started_seconds = self.clock.monotonic_seconds()
        result = await self.scanner.scan(text, command.direction, policy.scoring, owner=owner, is_patient=False)
        result = in_text(result, text, self.scanner.seal)
        if accept is not None:
            result = accept(result, policy.scoring)
        if self.detectors is not None:
            result = await self.detectors.judged(
                result, (_leaf(text),), command.direction, policy.scoring, owner=owner, accept=accept
            )
        return result, round((self.clock.monotonic_seconds() - started_seconds) * 1_000_000)

    async def keep(
        self,
        result: ScanResult,
        leaves: Sequence[Leaf],
        caller: Caller,
        *,
        direction: Direction,
        action: str,
        elapsed_us: int,
        captured: KeptText | None,
        operation: str = "shield.scan",
        details: Mapping[str, object] | None = None,
    ) -> None:
        """Record a scan. Of a REVIEW or BLOCK, audit event, alert, row and captured text are committed together.

        leaves: what was scanned. action: as of a traffic row. captured: what the policy keeps. details: what else the
        audit event tells.

        Raises AuditUnavailable, Overloaded.
        """
        sha256, chars = text_at_fault(result, leaves)
        row = TrafficRow(
            id=self.ids.new("trf"),
            occurred_at=self.clock.now_at(),
            request_id=caller.context.request_id,
            operation=operation,
            principal_id=caller.principal.id,
            verdict=str(result.verdict),
            score=result.score,
            key_prefix=caller.principal.key_prefix,
            agent=caller.context.agent,
            direction=str(direction),
            action=action,
            detections=tuple(described(result.detections, direction)),
            text_sha256=sha256,
            text_chars=chars,
            elapsed_us=elapsed_us,
            overhead_us=elapsed_us,
        )

        def insert(tx: Transaction) -> None:
            self.store.traffic.insert(tx, row)
            if captured is not None:
                self.store.captures.add(tx, row, captured)

        if result.verdict is Verdict.ALLOW:
            if self.store.db.write_behind(insert):
                # Callers come faster than the disk: each waits until the queue is written, a second at most.
                with anyio.move_on_after(CROWD_SECONDS), contextlib.suppress(StoreUnavailable):
                    await self.store.db.write(lambda tx: None, is_durable=False)
            return
        await self._commit(result, row, caller, details or {}, insert)

    async def _commit(
        self,
        result: ScanResult,
        row: TrafficRow,
        caller: Caller,
        details: Mapping[str, object],
        insert: Callable[[Transaction], None],
    ) -> None:
        told = {
            "verdict": row.verdict,
            "score": row.score,
            "direction": row.direction,
            "sha256": row.text_sha256,
            "chars": row.text_chars,
            "detections": list(row.detections),
        }
        event = self.audit.event(
            f"shield_scan_{row.verdict.lower()}",
            source="shield",
            principal=caller.principal,
            request=caller.context,
            resource_type="text",
            direction=row.direction,
            details=told | dict(details),
        )

        def work(tx: Transaction) -> None:
            self.audit.append(tx, event)
            self.alerts.raise_from_scan(
                tx,
                result,
                caller=caller,
                origin=row.operation,
                occurred_at=row.occurred_at,
                direction=Direction(row.direction or ""),
            )
            insert(tx)

        await self.audit.commit(work)


def scan_schema() -> JsonSchema:
    """Return the JSON Schema (2020-12) of what `ScanAnswer.data` returns."""
    answer: Any = json_schema(ScanAnswer, written=True)
    detection: Any = json_schema(Detection, written=True)
    kept = {name: value for name, value in detection["properties"].items() if name not in OF_RECORDS}
    items = detection | {"properties": kept, "required": list(kept)}
    properties = answer["properties"] | {
        "redacted": {"type": "string"},
        "detections": {"type": "array", "items": items},
    }
    required = [name for name in properties if name != "redacted"]
    return cast(JsonSchema, answer | {"properties": properties, "required": required})


def _leaf(text: str) -> Leaf:
    return Leaf("text", text, LeafKind.CONTENT)


def _answer(result: ScanResult, elapsed_us: int) -> ScanAnswer:
    return ScanAnswer(
        verdict=result.verdict,
        score=result.score,
        detections=result.detections,
        stats=ScanStats(**cast(Any, result.stats())),
        action="none" if result.redacted is None else "redacted",
        elapsed_ms=elapsed_us / 1000,
        redacted=result.redacted,
    )


def detection_data(detection: Detection) -> dict[str, object]:
    """Return a detection as an answer shows it to whoever has the text."""
    return {name: value for name, value in encode(detection).items() if name not in OF_RECORDS}
