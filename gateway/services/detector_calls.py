"""Ask the detectors about texts, and add what they say to what the shield has found.

The shield judges first, and what it blocks is not asked about. Each text of a prompt or answer is judged by itself, in
windows if it is long, and the worst judgement counts. A judgement is remembered by a keyed digest, so of a conversation
that goes on only the new texts are asked about. Whatever fails, the record of the detector says what happens then: no
failure and no answer in another form ever means that a text is safe.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio

from gateway.detectors.every import PROTOCOLS, read
from gateway.detectors.protocol import BAD_FORM, NOTHING, Judgement, Question, counts, worst
from gateway.domain.addresses import address_check
from gateway.domain.circuits import ProviderStatus
from gateway.domain.detectors import FAILED, Detector, DetectorKind, OnError
from gateway.errors import GatewayError
from gateway.llm.base import Leaf, LeafKind, UpstreamFault
from gateway.llm.joined import digest_of
from gateway.llm.upstream import JsonReader
from gateway.services.circuits import Circuits
from gateway.services.core import Core, Service
from gateway.services.health import HEALTHY
from gateway.services.provider_keys import ProviderKeys
from gateway.services.scanner import TextScanner
from gateway.shield.detections import Detection, Direction, Effect, ScanResult, Severity, Verdict, matched_of
from gateway.shield.scoring import Policy, judge

MOST_WINDOWS = 2_000
MOST_REMEMBERED = 16_384
_LEAST_FIELD_CHARS = 32
_SECRETS = Policy(category_actions={"secret": "redact"}, categories=frozenset({"secret"}))
_SEVERITY = {Effect.VETO: Severity.CRITICAL, Effect.REVIEW: Severity.HIGH, Effect.POINTS: Severity.MEDIUM}
_OF_ERROR = {OnError.BLOCK: Effect.VETO, OnError.REVIEW: Effect.REVIEW, OnError.ALLOW: Effect.OBSERVE}
_REFUSED = (400, 413, 422)
"""Statuses of a text that is too long for the model, or that the server cannot take."""
ERROR = "error"
"""The label of a detection that stands for a missing judgement."""


class DetectorFailed(Exception):
    """There is no judgement. is_its_fault: and not that of the text."""

    def __init__(self, reason: str, *, is_its_fault: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_its_fault = is_its_fault


@dataclass(frozen=True, slots=True)
class _Window:
    """A part of a text. leaf: the number of the text. at: where it begins there; None if the text was changed."""

    leaf: int
    at: int | None
    question: Question


class DetectorCalls(Service):
    """The way to the detectors, for chats, scans and the validation suite."""

    circuits: Circuits
    keys: ProviderKeys
    reader: JsonReader
    scanner: TextScanner
    _known: dict[bytes, tuple[float, Judgement]] = field(default_factory=dict, init=False)
    _limiters: dict[str, anyio.CapacityLimiter] = field(default_factory=dict, init=False)

    def __post_init__(self, core: Core) -> None:
        super().__post_init__(core)
        self._secret = self.ids.random_bytes(32)

    def enabled(self) -> Sequence[Detector]:
        """Return the detectors in use. Raises StoreUnavailable: none were read yet."""
        return [one for one in self.store.authority.now.detectors if one.enabled]

    def has_veto(self) -> bool:
        """Tell whether a detector may forbid an answer, so that no part of one may leave before its end."""
        return any(one.effect is Effect.VETO and Direction.OUTBOUND in one.directions for one in self.enabled())

    def health(self) -> str | None:
        """Return how the detectors are, in one word of the health answer; None if there are none. Asks nobody."""
        states = [self.circuits.status(one) for one in self.enabled()]
        if any(state in (ProviderStatus.OPEN, ProviderStatus.DEGRADED) for state in states):
            return "degraded"
        return HEALTHY if states else None

    async def judged(
        self,
        result: ScanResult,
        leaves: Sequence[Leaf],
        direction: Direction,
        policy: Policy,
        *,
        owner: str,
        asked: str = "",
        accept: Callable[[ScanResult, Policy], ScanResult] | None = None,
    ) -> ScanResult:
        """Return what shield and detectors together say of the texts of a prompt or answer.

        result: of the shield. asked: the end of what an answer replies to. accept: as of `ChatPolicy`.
        """
        detectors = [one for one in self.enabled() if direction in one.directions]
        if not detectors or result.verdict is Verdict.BLOCK:
            return result
        chance = int.from_bytes(self.ids.random_bytes(4)) / 2**32
        is_spread = any(one.category == "secret" and one.is_spread for one in result.detections)
        found: list[Detection] = []

        async def ask(detector: Detector) -> None:
            found.extend(await self.ask(detector, leaves, direction, owner=owner, asked=asked, is_spread=is_spread))

        async with anyio.create_task_group() as group:
            for detector in detectors:
                if detector.is_asked(result, chance):
                    group.start_soon(ask, detector)
        if not found:
            return result
        theirs = judge(found, policy)
        if accept is not None:
            theirs = accept(theirs, policy)
        return judge((*result.detections, *theirs.detections), policy, redacted=result.redacted)

    async def ask(
        self,
        detector: Detector,
        leaves: Sequence[Leaf],
        direction: Direction,
        *,
        owner: str,
        asked: str = "",
        is_spread: bool = False,
    ) -> list[Detection]:
        """Ask one detector; return its detection, that of an error, or none.

        is_spread: a secret stands in several texts.
        """
        wanted = [leaf for leaf in leaves if _is_language(leaf)]
        started_seconds = self.clock.monotonic_seconds()
        try:
            if is_spread and detector.masks:
                raise DetectorFailed("a secret is spread over several texts", is_its_fault=False)
            judgements = await self.judgements(
                detector, [Question(leaf.text, direction, asked) for leaf in wanted], owner=owner
            )
        except DetectorFailed as error:
            return [self._failed(detector, error.reason, self._elapsed_ms(started_seconds))]
        found = [(one, leaf) for one, leaf in zip(judgements, wanted, strict=True) if counts(detector, one)]
        self.metrics.count(
            "gateway_detector_requests_total", detector=detector.name, outcome="found" if found else "clean"
        )
        if not found:
            return []
        one, leaf = max(found, key=lambda pair: (not pair[0].is_unsure, pair[0].probability))
        return [self._detection(detector, one, leaf, len(found), self._elapsed_ms(started_seconds))]

    async def judgements(
        self, detector: Detector, questions: Sequence[Question], *, owner: str, is_test: bool = False
    ) -> list[Judgement]:
        """Return the judgement of each text.

        owner: whose texts they are; nobody else's judgements are used. is_test: ask even if the circuit is open.

        Raises:
            DetectorFailed: not every text was judged.
        """
        started_seconds, now_seconds = self.clock.monotonic_seconds(), self.clock.monotonic_seconds
        digests = [self._digest(detector, one, owner) for one in questions]
        known = {digest: one for digest in digests if (one := self._remembered(digest)) is not None}
        new = {number: one for number, one in enumerate(questions) if digests[number] not in known}
        if new:
            if not self.circuits.begin(detector) and not is_test:
                raise DetectorFailed("it failed again and again and is left alone for a while")
            windows: list[_Window] = []
            judged: dict[int, Judgement] = {}
            try:
                with anyio.fail_after(detector.wait_ms / 1000):
                    windows += await self._windows(detector, new)
                    await self._judge_all(detector, windows, judged)
            except (DetectorFailed, TimeoutError) as error:
                # Nobody may close the way to it for all others by a text that takes it long.
                late = DetectorFailed("it did not answer in time", is_its_fault=len(windows) == 1)
                failed = error if isinstance(error, DetectorFailed) else late
                if failed.is_its_fault:
                    self.circuits.failed(detector, failed.reason)
                else:
                    self.circuits.let_go(detector)
                raise failed from error
            except BaseException:
                self.circuits.let_go(detector)
                raise
            finally:  # what was judged in time need not be judged again when the same texts come again
                until_seconds = now_seconds() + detector.cache_seconds
                parts: dict[int, list[Judgement | None]] = {}
                for at, window in enumerate(windows):
                    parts.setdefault(window.leaf, []).append(judged.get(at))
                for number, mine in parts.items():
                    if None not in mine:
                        known[digests[number]] = worst(detector, [one for one in mine if one])
                        self._remember(digests[number], until_seconds, known[digests[number]])
            self.circuits.succeeded(detector)
            self.metrics.observe("gateway_detector_seconds", now_seconds() - started_seconds, detector=detector.name)
        return [known[digest] for digest in digests]

    async def _windows(self, detector: Detector, questions: dict[int, Question]) -> list[_Window]:
        """Cut texts into what the detector reads at once, with secrets masked if they have to be."""
        found = []
        for number, one in questions.items():
            sent, asked = one.text, one.asked
            if detector.masks:  # before anything is cut: of half a secret, nobody knows what it is
                sent, asked = await self._masked(sent), await self._masked(asked)
            step = max(1, detector.window - detector.overlap_chars)
            for at in range(0, max(1, len(sent) - detector.overlap_chars), step):
                part = Question(sent[at : at + detector.window], one.direction, asked[-detector.window :])
                found.append(_Window(number, at if sent == one.text else None, part))
        if len(found) > MOST_WINDOWS:
            reason = f"the texts are {len(found)} windows long, and {MOST_WINDOWS} are the most"
            raise DetectorFailed(reason, is_its_fault=False)
        return found

    async def _masked(self, text: str) -> str:
        """Return a text without its secrets. Raises DetectorFailed if one cannot be masked."""
        try:
            result = await self.scanner.scan(text, Direction.OUTBOUND, _SECRETS)
            masked = result.redacted or text
            if result.detections and (await self.scanner.scan(masked, Direction.OUTBOUND, _SECRETS)).detections:
                raise DetectorFailed("a secret in the text cannot be masked", is_its_fault=False)
            return masked
        except GatewayError as error:
            raise DetectorFailed("the shield could not mask the text", is_its_fault=False) from error

    async def _judge_all(self, detector: Detector, windows: Sequence[_Window], judged: dict[int, Judgement]) -> None:
        """Put the judgement of each window, placed in its text, into `judged` by the number of the window."""
        limiter = self._limiters.setdefault(detector.id, anyio.CapacityLimiter(detector.max_concurrent))
        limiter.total_tokens = detector.max_concurrent
        most = PROTOCOLS[detector.kind].most
        failures: list[DetectorFailed] = []

        async def judge_batch(start: int) -> None:
            batch = windows[start : start + most]
            try:
                async with limiter:
                    answer = await self._send(detector, [one.question for one in batch])
                pairs = zip(answer, batch, strict=True)
                judged.update({start + place: _placed(one, window) for place, (one, window) in enumerate(pairs)})
            except DetectorFailed as error:
                failures.append(error)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for start in range(0, len(windows), most):
                group.start_soon(judge_batch, start)
        if failures:
            raise failures[0]

    async def _send(self, detector: Detector, questions: Sequence[Question]) -> Sequence[Judgement]:
        protocol = PROTOCOLS[detector.kind]
        try:
            answer = await self.request(detector, protocol.path, protocol.body(detector, questions))
            return read(detector, answer, len(questions))
        except GatewayError as error:
            # A refused text says nothing of the server: nobody may close the way to it for all others.
            is_refused = isinstance(error, UpstreamFault) and error.status in _REFUSED
            raise DetectorFailed(error.message.rstrip("."), is_its_fault=not is_refused) from error
        except BAD_FORM as error:
            # What it answers may quote the text, so it is not repeated.
            raise DetectorFailed("its answer has another form than its kind and its labels say") from error

    async def request(self, detector: Detector, path: str, body: object = None) -> object:
        """Send one request to a detector; return the JSON of its answer. Raises GatewayError."""
        key = self.keys.read(detector.key_reference)
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        if detector.kind is DetectorKind.FMS_CONTENTS:
            headers["detector-id"] = detector.model or ""
        return await self.reader.ask(
            detector.base_url + path,
            headers,
            key=key,
            seconds=detector.wait_ms / 1000,
            allow_address=address_check(allow_private=detector.allow_private),
            body=body,
        )

    def _detection(self, detector: Detector, one: Judgement, leaf: Leaf, count: int, elapsed_ms: float) -> Detection:
        category = detector.category(one.label) or "injection"
        is_vague = one.is_unsure and detector.effect is Effect.VETO
        effect = Effect.REVIEW if is_vague else detector.effect
        end = min(one.end, len(leaf.text))
        said = f"says {one.label or 'yes'} with probability {one.probability:.2f}, after {elapsed_ms:.0f} ms"
        return Detection(
            rule=detector.rule,
            name=f"Detector {detector.name}",
            category=category,
            severity=_SEVERITY.get(effect, Severity.LOW),
            description=f"The detector {said}.",
            matched=matched_of(leaf.text[one.start : end], category) if one.start < end else "",
            confidence=round(one.probability, 4),
            count=count,
            start=one.start if one.start < end else 0,
            end=end if one.start < end else 0,
            view=leaf.view or "text",
            place=leaf.place,
            sha256=digest_of(leaf.text),
            chars=len(leaf.text),
            effect=effect,
            points=detector.points if effect is Effect.POINTS else 0,
            label=one.label[:100],
            elapsed_ms=elapsed_ms,
        )

    def _failed(self, detector: Detector, reason: str, elapsed_ms: float) -> Detection:
        self.metrics.count("gateway_detector_requests_total", detector=detector.name, outcome="failed")
        effect = _OF_ERROR[detector.error_action]
        return Detection(
            rule=detector.rule + FAILED,
            name=f"Detector {detector.name}",
            category=detector.category("") or "injection",
            severity=_SEVERITY.get(effect, Severity.LOW),
            description=f"The detector gave no judgement: {reason}.",
            effect=effect,
            label=ERROR,
            elapsed_ms=elapsed_ms,
        )

    def _elapsed_ms(self, started_seconds: float) -> float:
        return round((self.clock.monotonic_seconds() - started_seconds) * 1000, 1)

    def _digest(self, detector: Detector, one: Question, owner: str) -> bytes:
        parts = (owner, detector.id, str(detector.version), one.direction, one.asked, one.text)
        hashed = hashlib.sha256(self._secret)
        for part in parts:
            raw = part.encode("utf-8", "surrogatepass")
            hashed.update(len(raw).to_bytes(8) + raw)
        return hashed.digest()

    def _remembered(self, digest: bytes) -> Judgement | None:
        until_seconds, found = self._known.get(digest, (0.0, NOTHING))
        return found if until_seconds > self.clock.monotonic_seconds() else None

    def _remember(self, digest: bytes, until_seconds: float, one: Judgement) -> None:
        self._known.pop(digest, None)
        self._known[digest] = until_seconds, one
        if len(self._known) > MOST_REMEMBERED:
            del self._known[next(iter(self._known))]


def _is_language(leaf: Leaf) -> bool:
    """Tell whether a text says something: the conversation, any other text of some words, and what a file holds.

    Other views of a text repeat it in another form.
    """
    if leaf.view not in ("", "base64") or not leaf.text.strip():
        return False
    is_long = len(leaf.text) >= _LEAST_FIELD_CHARS and len(leaf.text.split()) > 1
    return leaf.kind is LeafKind.CONTENT or leaf.kind is LeafKind.FIELD and is_long


def _placed(one: Judgement, window: _Window) -> Judgement:
    if not one.end:
        return one
    if window.at is None:
        return Judgement(one.probability, one.label, is_unsure=one.is_unsure)
    return Judgement(one.probability, one.label, one.start + window.at, one.end + window.at, one.is_unsure)
