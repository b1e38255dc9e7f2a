"""What of a prompt may go to the model and what of a reply may come back. Records nothing and sends nothing."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import anyio.lowlevel

from gateway.domain.captures import Capture, CapturedText
from gateway.domain.policies import (
    OutboundAction,
    ShieldMode,
    ShieldPolicy,
    UnscannedPart,
    blocking_redacted,
    redacted_categories,
    secrets_only,
    with_unscannable,
)
from gateway.llm.base import Dialect, Leaf, LeafKind, Leaves, Prompt, Reply, ReplyLeaves, UpstreamRefused
from gateway.llm.joined import JoinedText, in_text, join, message_ends
from gateway.llm.masking import (
    NOTICE,
    joined_message,
    masked_choice,
    strings,
    with_joined_parts,
    with_strings,
    withheld_choice,
)
from gateway.offload import ThreadOffload
from gateway.records import record
from gateway.services.captures import Captures
from gateway.services.scanner import TextScanner
from gateway.shield.detections import Direction, ScanResult, Verdict
from gateway.shield.scoring import Policy, combine, judge

Accept = Callable[[ScanResult, Policy], ScanResult]
Action = Literal["none", "blocked", "redacted", "observed"]
LONG_CHARS = 12_288
"""Of what is sent again with more behind it, only the end is scanned again when it is longer than this."""
_SHORTEST_MATCH_CHARS = 4
_TEXTS_A_TURN = 64
_TEXTS_HERE = 500  # more are joined in a thread


def is_clean(result: ScanResult) -> bool:
    """Tell whether nothing at all was found, so that nothing has to be decided."""
    return not result.detections and result.verdict is Verdict.ALLOW


@record
class ScannedPrompt:
    """A prompt and what the shield says of it.

    action: ``blocked`` when it may not be forwarded. text_sha256, text_chars: of the texts of its messages, joined by
    line breaks.
    masked: what is forwarded in its place, None for the prompt as it is. captured: what is kept of its texts.
    """

    result: ScanResult
    action: Action
    text_sha256: str
    text_chars: int
    masked: Prompt | None = None
    captured: CapturedText | None = None


@record
class ScannedReply:
    """What the shield says of a reply, and what was done.

    changed: what is given to the client in its place, None for the reply as it is. captured: what is kept of the texts
    that came.
    """

    result: ScanResult
    action: Action
    changed: Reply | None = None
    captured: CapturedText | None = None


class ChatGuard:
    """Scans prompts and replies of one dialect under one policy. owner: of those whose texts they are.

    accept: leaves what is accepted out of a result; None while nothing is.
    """

    def __init__(
        self,
        scanner: TextScanner,
        dialect: Dialect,
        policy: ShieldPolicy,
        *,
        captures: Captures,
        accept: Accept | None = None,
        aside: ThreadOffload | None = None,
        owner: str = "",
    ) -> None:
        self._scanner = scanner
        self._accept = accept
        self._dialect = dialect
        self.policy = policy
        self.aside = aside or ThreadOffload()
        self._redacts = redacted_categories(policy)
        self._captures = captures
        self._owner = owner

    async def inbound(self, leaves: Leaves, prompt: Prompt) -> ScannedPrompt:
        """Scan every text of a prompt; mask what the policy wants masked before the model reads it.

        Raises:
            ShieldUnavailable: the shield failed; nothing may be forwarded.
        """
        policy = self.policy
        joined = await self._join(leaves.texts)
        result = await self._judge_prompt(leaves, joined, is_patient=False)
        text = "\n".join(leaf.text for leaf in leaves.texts if leaf.kind is LeafKind.CONTENT and not leaf.view)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        if policy.capture is Capture.NONE and is_clean(result):
            return ScannedPrompt(result, "none", digest, len(text))
        action: Action = "none"
        masked: Prompt | None = None
        must_mask = self._must_mask(result)
        if policy.mode is ShieldMode.OBSERVE:
            action = "observed" if must_mask or result.verdict is Verdict.BLOCK else "none"
        elif result.verdict is Verdict.BLOCK:
            action = "blocked"
        elif must_mask:
            action = "redacted"
            masked = Prompt(prompt.model, await self._masked_prompt(prompt.body))
            left = self._dialect.prompt_leaves(masked)
            if self._must_mask(await self._judge_prompt(left, await self._join(left.texts))):
                # What stands in another form, or over several texts, cannot be masked where it stands.
                action, masked = "blocked", None
                result = judge(result.detections, blocking_redacted(policy), redacted=result.redacted)
        captured = await self._captures.of_leaves(leaves.texts, Direction.INBOUND, policy)
        return ScannedPrompt(result, action, digest, len(text), masked, captured)

    async def outbound(self, reply: Reply) -> ScannedReply:
        """Scan every text of a reply; withhold or mask what may not leave.

        Raises:
            ShieldUnavailable: the shield failed; nothing may be given out.
            UpstreamUnavailable: the reply holds more than can be scanned.
        """
        result = await self._judge_reply(reply)
        scanned = ScannedReply(result, "none") if is_clean(result) else await self._decided(reply, result)
        if self.policy.capture is Capture.NONE:
            return scanned
        leaves = await self._reply_texts(reply)
        captured = await self._captures.of_leaves(leaves.texts, Direction.OUTBOUND, self.policy)
        return replace(scanned, captured=captured)

    async def _decided(self, reply: Reply, result: ScanResult) -> ScannedReply:
        """Return what may be given out of a reply in which something was found."""
        policy = self.policy
        must_mask = self._must_mask(result)
        if result.verdict is not Verdict.BLOCK and not must_mask:
            return ScannedReply(result, "none")
        if policy.mode is ShieldMode.OBSERVE:
            return ScannedReply(result, "observed")
        if policy.outbound is OutboundAction.REDACT or result.verdict is not Verdict.BLOCK:
            reply = reply.with_body(await self._masked_body(reply.body))
            left = await self._judge_reply(reply)
            if left.verdict is not Verdict.BLOCK and not self._must_mask(left):
                return ScannedReply(result, "redacted", reply)
        body = await self._withheld_body(reply)
        if await self._still_leaks(reply.with_body(body)):
            body = await self._withheld_body(reply, is_over_choices=True)
            if await self._still_leaks(reply.with_body(body)):
                body = {"object": "chat.completion", "choices": body["choices"]}
        if must_mask:
            result = judge(result.detections, blocking_redacted(policy), redacted=result.redacted)
            body = await self._masked_body(body)
        return ScannedReply(result, "blocked", reply.with_body(body))

    async def refusal(self, error: UpstreamRefused) -> UpstreamRefused:
        """Return what a client may read of an upstream's refusal: its words, if nothing was found in them."""
        words = "\n".join((error.message, error.code, error.param or ""))
        if await self._is_clean(words):
            return error
        return UpstreamRefused(error.status, retry_after_seconds=error.retry_after_seconds)

    async def models(self, models: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
        """Return the models whose names and owners have nothing in them that may not leave."""
        if await self._is_clean("\n".join(text for model in models for text in strings(dict(model)))):
            return list(models)
        return [model for model in models if await self._is_clean("\n".join(strings(dict(model))))]

    async def _is_clean(self, text: str) -> bool:
        result = await self._judge_one(text, Direction.OUTBOUND)
        return result.verdict is Verdict.ALLOW and result.redacted is None

    async def _judge_one(self, text: str, direction: Direction) -> ScanResult:
        """Judge a text by itself."""
        result = await self._scanner.scan(text, direction, self.policy.scoring)
        return self._accepted(in_text(result, text), self.policy.scoring)

    def _accepted(self, result: ScanResult, policy: Policy) -> ScanResult:
        return result if self._accept is None else self._accept(result, policy)

    async def _placed(
        self, joined: JoinedText, direction: Direction, policy: Policy, *, is_patient: bool = True
    ) -> ScanResult:
        ends = message_ends(joined) if len(joined.text) > LONG_CHARS else ()
        result = await self._scanner.scan(
            joined.text, direction, policy, owner=self._owner, ends=ends, is_patient=is_patient
        )
        return self._accepted(joined.placed(result), policy)

    async def _join(self, texts: Sequence[Leaf]) -> JoinedText:
        return join(texts) if len(texts) <= _TEXTS_HERE else await self.aside.run(join, texts)

    async def _reply_leaves(self, reply: Reply) -> ReplyLeaves:
        read = self._dialect.reply_leaves
        return read(reply) if not reply.is_large else await self.aside.run(read, reply)

    async def _reply_texts(self, reply: Reply) -> Leaves:
        read = self._dialect.reply_texts
        return read(reply) if not reply.is_large else await self.aside.run(read, reply)

    async def _judge_reply(self, reply: Reply) -> ScanResult:
        """Judge all choices and what is outside of them together: one scan for the usual reply."""
        leaves = await self._reply_texts(reply)
        return await self._judge_leaves(leaves.texts, leaves.unscanned)

    async def _judge_leaves(self, texts: Sequence[Leaf], unscanned: tuple[UnscannedPart, ...]) -> ScanResult:
        result = await self._placed(await self._join(texts), Direction.OUTBOUND, self.policy.scoring)
        return with_unscannable(result, unscanned, self.policy)

    async def _still_leaks(self, reply: Reply) -> bool:
        """Tell whether what was left of a reply is still to be blocked: a match may stand over several choices."""
        left = await self._judge_reply(reply)
        return left.verdict is Verdict.BLOCK or self._must_mask(left)

    async def _withheld_body(self, reply: Reply, *, is_over_choices: bool = False) -> Mapping[str, object]:
        """Put a notice in the place of each choice that is at fault, and mask what leaks outside of the choices.

        Where only all choices together reach the threshold, each of them in which something was found is at fault.
        is_over_choices: all are at fault.
        """
        leaves = await self._reply_leaves(reply)
        results = [await self._judge_leaves(part.texts, part.unscanned) for part in leaves.choices]
        outside = await self._judge_leaves(leaves.outside.texts, leaves.outside.unscanned)
        faulty = {
            index for index, result in enumerate(results) if result.verdict is Verdict.BLOCK or self._must_mask(result)
        }
        if not faulty and outside.verdict is not Verdict.BLOCK:
            faulty = {index for index, result in enumerate(results) if result.score}
        if is_over_choices:
            faulty = set(range(len(results)))
        choices = reply.body["choices"]
        assert isinstance(choices, list)
        kept = [withheld_choice(choice, index) if index in faulty else choice for index, choice in enumerate(choices)]
        if not outside.detections:
            return {**reply.body, "choices": kept}
        around = {**reply.body, "choices": None}
        masked = with_strings(around, await self._masks(strings(around)))
        assert isinstance(masked, dict)
        return {**masked, "choices": kept}

    async def _judge_prompt(self, leaves: Leaves, joined: JoinedText, *, is_patient: bool = True) -> ScanResult:
        policy = self.policy
        if policy.tool_injection or not any(leaf.kind is LeafKind.TOOL for leaf in leaves.texts):
            result = await self._placed(joined, Direction.INBOUND, policy.scoring, is_patient=is_patient)
        else:
            talk = await self._join([leaf for leaf in leaves.texts if leaf.kind is not LeafKind.TOOL])
            tools = await self._join([leaf for leaf in leaves.texts if leaf.kind is LeafKind.TOOL])
            found = await self._placed(talk, Direction.INBOUND, policy.scoring, is_patient=is_patient)
            secrets = await self._placed(tools, Direction.INBOUND, secrets_only(policy.scoring))
            result = combine((found, secrets), policy.scoring)
        return with_unscannable(result, leaves.unscanned, policy)

    def _must_mask(self, result: ScanResult) -> bool:
        """Tell whether something has to be masked. What somebody answers for goes as it is."""
        return bool(self._redacts) and any(
            found.category in self._redacts and found.accepted is None for found in result.detections
        )

    async def _masked_prompt(self, body: Mapping[str, object]) -> Mapping[str, object]:
        messages = body["messages"]
        assert isinstance(messages, list)
        joined = {**body, "messages": [joined_message(message) for message in messages]}
        masked = with_strings(joined, await self._masks(strings(joined), Direction.INBOUND))
        assert isinstance(masked, dict)
        return masked

    async def _masked_body(self, body: Mapping[str, object]) -> Mapping[str, object]:
        choices = body["choices"]
        assert isinstance(choices, list)
        joined = [with_joined_parts(choice) for choice in choices]
        masks = await self._masks(strings({**body, "choices": joined}))
        around = with_strings({**body, "choices": None}, masks)
        assert isinstance(around, dict)
        return {**around, "choices": [masked_choice(choice, masks) for choice in joined]}

    async def _masks(self, texts: Iterable[str], direction: Direction = Direction.OUTBOUND) -> dict[str, str]:
        """Return what stands for each text in which something has to be masked.

        A text that would still be blocked without its masked matches goes as a whole.
        """
        masks: dict[str, str] = {}
        for number, text in enumerate({text for text in texts if len(text) >= _SHORTEST_MATCH_CHARS}):
            if number % _TEXTS_A_TURN == 0:
                await anyio.lowlevel.checkpoint()  # a reply may have many texts, and others wait
            result = await self._judge_one(text, direction)
            if result.redacted is not None:
                masks[text] = result.redacted
            if result.verdict is Verdict.BLOCK:
                left = await self._judge_one(masks.get(text, text), direction)
                if left.verdict is Verdict.BLOCK:
                    masks[text] = NOTICE
        return masks
