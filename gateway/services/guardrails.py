"""Judge what other gateways ask: each call as one prompt or one answer of a chat, recorded as a scan is."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.domain.policies import redacted_categories
from gateway.domain.principals import Caller
from gateway.domain.risk_acceptances import Source
from gateway.errors import BodyTooLarge, UpstreamUnavailable
from gateway.guardrails.contract import Asked, Judged
from gateway.llm.base import ChatRequest, Leaves, Prompt, Reply
from gateway.services.chat_policy import ChatPolicy, Scanned
from gateway.services.scans import Scans
from gateway.shield.detections import Direction


@dataclass(kw_only=True, eq=False, repr=False)
class Guardrails:
    """The shield for the callers of `gateway.guardrails`. policy_of: applies a policy as in a chat."""

    scans: Scans
    policy_of: Callable[..., ChatPolicy]

    async def judge(self, caller: Caller, name: str, asked: Asked, *, call_id: str | None = None) -> Judged:
        """Judge texts by the policy of a key. name: of the contract. call_id: the caller's own id, kept in the audit.

        Raises:
            BodyTooLarge: more text or values than a chat may have.
            ShieldUnavailable: the shield failed; nothing may be let through. Shed: there is too much to do.
            AuditUnavailable, Overloaded: what was found could not be recorded.
        """
        scans = self.scans
        started_seconds = scans.clock.monotonic_seconds()
        policy = self.policy_of(
            scans.policies.of(caller.principal, scans.policy),
            accept=scans.acceptances.accept_for(
                Source(caller.context.agent or caller.principal.name, caller.principal.lineage, caller.principal.policy)
            ),
            owner=caller.principal.id,
        )
        leaves, scanned = await self._scanned(policy, asked)
        result = scanned.result
        elapsed_us = round((scans.clock.monotonic_seconds() - started_seconds) * 1_000_000)
        await scans.keep(
            result,
            leaves.texts,
            caller,
            direction=asked.direction,
            action=scanned.action,
            elapsed_us=elapsed_us,
            captured=scanned.captured,
            operation=f"guardrail.{name}",
            details={"contract": name, "action": scanned.action} | ({"call_id": call_id} if call_id else {}),
        )
        changed = asked.body if scanned.changed is None else scanned.changed.body
        return Judged(asked, result, scanned.action, changed, redacted_categories(policy.policy))

    async def _scanned(self, policy: ChatPolicy, asked: Asked) -> tuple[Leaves, Scanned[Prompt] | Scanned[Reply]]:
        if asked.direction is Direction.INBOUND:
            prompt = Prompt("", asked.body)
            request = ChatRequest(prompt, await policy.offload.run(policy.dialect.prompt_leaves, prompt))
            return request.leaves, await policy.inbound(request)
        reply = Reply(asked.body, is_large=True)  # so it is walked through in a thread
        try:
            leaves = await policy.offload.run(policy.dialect.reply_leaves, reply)
            return leaves.together(), await policy.outbound(reply)
        except UpstreamUnavailable as error:
            raise BodyTooLarge("The answer is more than can be scanned.") from error
