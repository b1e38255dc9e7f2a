"""As whom a user tries a text or a chat: as a key, under a policy, or as the gateway judges keys without a policy."""

from dataclasses import dataclass, replace

from gateway.domain.principals import Permission, Principal, Scope
from gateway.errors import Conflict, PermissionDenied
from gateway.services.core import Service
from gateway.services.keys import Keys
from gateway.services.policies import Policies


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedAs:
    """The policy (id or name) or the key (id) whose rules apply to a trial; at most one of them."""

    policy: str | None = None
    key: str | None = None


class Trials(Service):
    """Says as whom a trial of a user is judged."""

    policies: Policies
    keys: Keys

    async def principal(self, who: Principal, wanted: TriedAs, scope: Scope) -> Principal:
        """Return the principal of a trial of `who`. scope: that a key needs for the same.

        Raises:
            Conflict: a policy and a key, or the key could not do it. PermissionDenied: the user may not see keys.
            NotFound: there is no such policy or key.
        """
        if wanted.key is None:
            return who if wanted.policy is None else replace(who, policy=(await self.policies.show(wanted.policy)).id)
        if wanted.policy is not None:
            raise Conflict("Name a policy or a key, not both.", param="policy")
        if Permission.API_KEYS_READ not in who.permissions:
            raise PermissionDenied("Your role may not try the rules of a key.", param="key")
        found = await self.keys.show(wanted.key)
        if (status := found.status_at(self.clock.now_at())) != "active" or scope not in found.scopes:
            why = f"is {status}" if status != "active" else f"lacks the scope {scope}"
            raise Conflict(f"The key {why}, so nothing can be tried as it.", param="key")
        return found.principal()
