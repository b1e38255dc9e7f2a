"""Decide what of a prompt may go to the model and what of a reply may come back. Records nothing and sends nothing.

All texts of a prompt or reply are scanned together, since an attack may be spread over them. Where a policy masks, the
changed prompt or reply is scanned again: what stands over several texts, or in another form, cannot be masked in place
and is blocked. A blocked reply loses the choices at fault first, and everything else only if that does not help.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, TypeVar

import anyio.lowlevel

from gateway.domain.detectors import DETECTOR
from gateway.domain.policies import (
    KeptText,
    OutboundAction,
    ShieldMode,
    ShieldPolicy,
    blocking_redacted,
    redacted_categories,
    secrets_only,
    with_unscannable,
)
from gateway.llm.base import ChatRequest, Leaf, LeafKind, Leaves, Prompt, Reply, ReplyLeaves, UpstreamRefused
from gateway.llm.joined import digest_of, in_text, join, message_ends
from gateway.llm.masking import NOTICE, strings, with_strings
from gateway.llm.openai import OpenAiDialect
from gateway.offload import ThreadOffload
from gateway.services.captures import Captures
from gateway.services.detector_calls import DetectorCalls
from gateway.services.scanner import TextScanner
from gateway.shield.detections import Direction, ScanResult, Verdict
from gateway.shield.scoring import MODEL_RULE, Policy, combine, judge
from gateway.shield.stream import StreamScanner

Accept = Callable[[ScanResult, Policy], ScanResult]
Action = Literal["none", "blocked", "redacted", "observed"]
Text = TypeVar("Text", Prompt, Reply)
LONG_CHARS = 12_288
"""Of a longer prompt that comes again with more behind it, only the end is scanned again."""
_SHORTEST_MATCH_CHARS = 4
_TEXTS_A_TURN = 64
_TEXTS_IN_LOOP = 500  # more are joined in a thread


@dataclass(frozen=True, slots=True)
class Scanned(Generic[Text]):
    """What the shield says of a prompt or reply, and what was done.

    action: ``blocked`` if a prompt may not be forwarded. changed: what goes on instead of a prompt or reply, None for
    it as it is. captured: what is kept of the texts that came.
    """

    result: ScanResult
    action: Action
    changed: Text | None = None
    captured: KeptText | None = None


@dataclass(eq=False, repr=False)
class ChatPolicy:
    """One policy, applied to the prompts and replies of one dialect.

    owner: of the texts. accept: takes accepted risks out of a result; None if there are none. offload: for large ones.
    detectors: other judges; None without any.
    """

    policy: ShieldPolicy
    scanner: TextScanner
    dialect: OpenAiDialect
    captures: Captures
    offload: ThreadOffload
    accept: Accept | None = None
    owner: str = ""
    detectors: DetectorCalls | None = None
    _asked: str = field(default="", init=False)

    async def inbound(self, request: ChatRequest) -> Scanned[Prompt]:
        """Scan every text of a prompt; mask what the policy wants masked before the model reads it.

        Raises:
            ShieldUnavailable: the shield failed; nothing may be forwarded. Shed: there is too much to do.
        """
        policy = self.policy
        result = await self._scan_prompt(request.leaves, is_patient=False)
        result = await self._judged(result, request.leaves.texts, Direction.INBOUND)
        action: Action = "none"
        masked: Prompt | None = None
        must_mask = self._must_mask(result)
        if policy.mode is ShieldMode.OBSERVE:
            action = "observed" if must_mask or result.verdict is Verdict.BLOCK else "none"
        elif result.verdict is Verdict.BLOCK:
            action = "blocked"
        elif must_mask:
            action, masked = "redacted", await self._masked_prompt(request.prompt)
            if self._must_mask(await self._scan_prompt(self.dialect.prompt_leaves(masked))):
                action, masked, result = "blocked", None, self._unmaskable(result)
        captured = await self.captures.of_leaves(request.leaves.texts, Direction.INBOUND, policy)
        return Scanned(result, action, masked, captured)

    async def outbound(self, reply: Reply, *, is_whole: bool = True) -> Scanned[Reply]:
        """Scan every text of a reply; withhold or mask what may not leave.

        is_whole: False for the beginning of a streamed one, about which no detector is asked.

        Raises:
            ShieldUnavailable: the shield failed; nothing may be given out.
            UpstreamUnavailable: the reply holds more than can be scanned.
        """
        leaves = await self._reply_leaves(reply)
        result = await self._scan_reply(leaves)
        if is_whole:
            result = await self._judged(result, leaves.texts, Direction.OUTBOUND)
        scanned = await self._decide(reply, result)
        captured = await self.captures.of_leaves(leaves.texts, Direction.OUTBOUND, self.policy)
        return replace(scanned, captured=captured)

    async def stream(self) -> StreamScanner:
        """Return what lets out the text of a reply while it grows. Raises ShieldUnavailable: the shield failed."""
        return await self.scanner.stream(None if self.policy.mode is ShieldMode.OBSERVE else self.policy.scoring)

    async def rest(self, scanned: Scanned[Reply], text: str, *, given_chars: int, said: str) -> str | None:
        """Return what may leave of the end of a text; None if nothing may.

        given_chars: how much of the text has left, as `said`. The whole text is masked, since what stands before a
        match may be what it is known by; if its beginning is then another one than has left, nothing more leaves.
        """
        if scanned.changed is None:
            return text[given_chars:]
        masked = (await self._masks((text,), Direction.OUTBOUND)).get(text, text)
        return masked.removeprefix(said) if masked.startswith(said) else None

    async def around(self, fields: Mapping[str, object]) -> Mapping[str, object]:
        """Return the fields around the choices of a reply, if nothing was found in them, else none."""
        is_clean = self.policy.mode is ShieldMode.OBSERVE or await self._is_clean("\n".join(strings(dict(fields))))
        return fields if is_clean else {}

    async def refusal(self, error: UpstreamRefused) -> UpstreamRefused:
        """Return what a client may read of an upstream's refusal: its words, if nothing was found in them."""
        if await self._is_clean("\n".join((error.message, error.code, error.param or ""))):
            return error
        return UpstreamRefused(error.status, retry_after_seconds=error.retry_after_seconds, has_key=error.has_key)

    async def models(self, models: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
        """Return the models without those whose name or owner holds something that may not leave."""
        if await self._is_clean("\n".join(text for model in models for text in strings(dict(model)))):
            return list(models)
        return [model for model in models if await self._is_clean("\n".join(strings(dict(model))))]

    async def _judged(self, result: ScanResult, texts: Sequence[Leaf], direction: Direction) -> ScanResult:
        """Return what the shield and the detectors say together. Of a prompt, note what an answer replies to."""
        if self.detectors is None:
            return result
        asked = self._asked
        if direction is Direction.INBOUND:
            # Each text of a prompt is judged by itself, so that one that comes again is known.
            asked, self._asked = "", next((one.text for one in reversed(texts) if one.kind is LeafKind.CONTENT), "")
        return await self.detectors.judged(
            result, texts, direction, self.policy.scoring, owner=self.owner, asked=asked, accept=self.accept
        )

    async def _scan_prompt(self, leaves: Leaves, *, is_patient: bool = True) -> ScanResult:
        policy, texts = self.policy, leaves.texts
        tools = () if policy.tool_injection else [leaf for leaf in texts if leaf.kind is LeafKind.TOOL]
        if tools:
            others = [leaf for leaf in texts if leaf.kind is not LeafKind.TOOL]
            found = await self._scan(others, Direction.INBOUND, policy.scoring, is_patient=is_patient)
            secrets = await self._scan(tools, Direction.INBOUND, secrets_only(policy.scoring))
            result = combine((found, secrets), policy.scoring)
        else:
            result = await self._scan(texts, Direction.INBOUND, policy.scoring, is_patient=is_patient)
        return with_unscannable(result, leaves.unscanned, policy)

    async def _scan_reply(self, leaves: Leaves) -> ScanResult:
        result = await self._scan(leaves.texts, Direction.OUTBOUND, self.policy.scoring)
        return with_unscannable(result, leaves.unscanned, self.policy)

    async def _scan(
        self, texts: Sequence[Leaf], direction: Direction, policy: Policy, *, is_patient: bool = True
    ) -> ScanResult:
        """Scan texts as one, and say of each detection in which of them it stands."""
        joined = join(texts) if len(texts) <= _TEXTS_IN_LOOP else await self.offload.run(join, texts)
        ends = message_ends(joined) if len(joined.text) > LONG_CHARS else ()
        result = await self.scanner.scan(
            joined.text, direction, policy, owner=self.owner, ends=ends, is_patient=is_patient
        )
        placed = joined.placed(result, self.scanner.seal)
        return self._accepted(await self._attributed(placed, texts, direction, policy), policy)

    async def _attributed(
        self, result: ScanResult, texts: Sequence[Leaf], direction: Direction, policy: Policy
    ) -> ScanResult:
        """Say whether one text alone accounts for what the attack model found: whether the others are clean without it.

        The model judges all texts at once and reports only its strongest words, so that no place says this.
        """
        found = next((one for one in result.detections if one.rule == MODEL_RULE), None)
        if found is None:
            return result
        mine = {leaf.text for leaf in texts if leaf.place == found.place and digest_of(leaf.text) == found.sha256}
        rest = [leaf for leaf in texts if leaf.text not in mine]
        again = await self.scanner.scan(join(rest).text, direction, policy, owner=self.owner) if rest else None
        is_spread = again is not None and any(one.rule == MODEL_RULE for one in again.detections)
        detections = (replace(one, is_spread=is_spread) if one is found else one for one in result.detections)
        return replace(result, detections=tuple(detections))

    async def _scan_text(self, text: str, direction: Direction) -> ScanResult:
        scoring = self.policy.scoring
        return self._accepted(
            in_text(await self.scanner.scan(text, direction, scoring), text, self.scanner.seal), scoring
        )

    async def _is_clean(self, text: str) -> bool:
        result = await self._scan_text(text, Direction.OUTBOUND)
        return result.verdict is Verdict.ALLOW and result.redacted is None

    async def _reply_leaves(self, reply: Reply) -> Leaves:
        return (await self._reply_parts(reply)).together()

    async def _reply_parts(self, reply: Reply) -> ReplyLeaves:
        leaves = self.dialect.reply_leaves
        return await self.offload.run(leaves, reply) if reply.is_large else leaves(reply)

    def _accepted(self, result: ScanResult, policy: Policy) -> ScanResult:
        return result if self.accept is None else self.accept(result, policy)

    def _must_mask(self, result: ScanResult) -> bool:
        """Tell whether the shield has found something to mask. What somebody has accepted goes as it is."""
        redacted = redacted_categories(self.policy)
        mine = (one for one in result.detections if not one.rule.startswith(DETECTOR))
        return any(one.category in redacted and one.accepted is None for one in mine)

    def _is_faulty(self, result: ScanResult) -> bool:
        return result.verdict is Verdict.BLOCK or self._must_mask(result)

    def _unmaskable(self, result: ScanResult) -> ScanResult:
        """Return the result of a text in which something should be masked and cannot be: it weighs like `block`."""
        return judge(result.detections, blocking_redacted(self.policy), redacted=result.redacted)

    async def _decide(self, reply: Reply, result: ScanResult) -> Scanned[Reply]:
        """Return what may be given out of a reply with this result."""
        policy, must_mask = self.policy, self._must_mask(result)
        if not self._is_faulty(result):
            return Scanned(result, "none")
        if policy.mode is ShieldMode.OBSERVE:
            return Scanned(result, "observed")
        # What a detector objects to may stand anywhere, and a scan cannot tell whether it is still there.
        is_everywhere = result.verdict is Verdict.BLOCK and any(
            one.rule.startswith(DETECTOR) and one.score for one in result.detections
        )
        if not is_everywhere and (policy.outbound is OutboundAction.REDACT or result.verdict is not Verdict.BLOCK):
            reply = await self._masked_reply(reply)
            if not await self._still_leaks(reply):
                return Scanned(result, "redacted", reply)
        kept = await self._withheld(reply, is_over_choices=is_everywhere)
        if await self._still_leaks(kept):  # a match may stand over several choices
            kept = await self._withheld(reply, is_over_choices=True)
            if await self._still_leaks(kept):
                kept = self.dialect.bare(kept)
        if must_mask:
            return Scanned(self._unmaskable(result), "blocked", await self._masked_reply(kept))
        return Scanned(result, "blocked", kept)

    async def _still_leaks(self, reply: Reply) -> bool:
        return self._is_faulty(await self._scan_reply(await self._reply_leaves(reply)))

    async def _withheld(self, reply: Reply, *, is_over_choices: bool = False) -> Reply:
        """Return a reply with a notice for each choice at fault, and with what leaks outside of the choices masked.

        Where only all choices together reach the threshold, each choice with a detection is at fault.
        is_over_choices: all are at fault.
        """
        parts = await self._reply_parts(reply)
        results = [await self._scan_reply(part) for part in parts.choices]
        outside = await self._scan_reply(parts.outside)
        faulty = {index for index, result in enumerate(results) if is_over_choices or self._is_faulty(result)}
        if not faulty and outside.verdict is not Verdict.BLOCK:
            faulty = {index for index, result in enumerate(results) if result.score}
        around = strings(self.dialect.outside(reply)) if outside.detections else ()
        return self.dialect.withheld(reply, faulty, await self._masks(around, Direction.OUTBOUND))

    async def _masked_prompt(self, prompt: Prompt) -> Prompt:
        body = self.dialect.joined(prompt.body)
        masked = with_strings(body, await self._masks(strings(body), Direction.INBOUND))
        assert isinstance(masked, dict)
        return Prompt(prompt.model, masked)

    async def _masked_reply(self, reply: Reply) -> Reply:
        body = self.dialect.joined(reply.body)
        return self.dialect.masked_reply(reply.with_body(body), await self._masks(strings(body), Direction.OUTBOUND))

    async def _masks(self, texts: Iterable[str], direction: Direction) -> dict[str, str]:
        """Return what stands for each text in which something has to be masked.

        A text that would still be blocked without its masked matches goes as a whole.
        """
        masks: dict[str, str] = {}
        for number, text in enumerate({text for text in texts if len(text) >= _SHORTEST_MATCH_CHARS}):
            if number % _TEXTS_A_TURN == 0:
                await anyio.lowlevel.checkpoint()  # a reply may have many texts, and others wait
            result = await self._scan_text(text, direction)
            if result.redacted is not None:
                masks[text] = result.redacted
            if result.verdict is Verdict.BLOCK:
                left = await self._scan_text(masks.get(text, text), direction)
                if left.verdict is Verdict.BLOCK:
                    masks[text] = NOTICE
        return masks
