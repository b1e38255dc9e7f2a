"""Named policies: made, changed, attached to keys, and which one holds for a caller. Hot, versioned, audited."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from gateway.clock import Clock, Ids
from gateway.domain.captures import MAX_CAPTURE_DAYS, Capture
from gateway.domain.policies import (
    OutboundAction,
    PolicyRecord,
    ShieldMode,
    ShieldPolicy,
    Unscannable,
)
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import Conflict, InvalidRequest, NotFound, PermissionDenied
from gateway.field_types import PlainName, read_plain_name
from gateway.schema import Bounds
from gateway.services.audit import Audit
from gateway.services.audit_trail import AuditTrail, check_version
from gateway.shield.detections import CATEGORIES
from gateway.shield.scoring import HIGHEST_SCORE, Action
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.store import Store

MAX_POLICIES = 1000
_NO_POLICY = "The policy of this API key does not exist, so the key is refused. Give the key another policy."

Score = Annotated[int, Bounds(1, HIGHEST_SCORE)]
Actions = Annotated[Mapping[str, Action], Bounds(names=Bounds(words=CATEGORIES))]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPolicy:
    """What is said of a policy. None leaves a field as it is, or in a new one as it is by default."""

    name: PlainName | None = None
    mode: ShieldMode | None = None
    block_score: Score | None = None
    review_score: Score | None = None
    category_actions: Actions | None = None
    unscannable: Unscannable | None = None
    outbound: OutboundAction | None = None
    tool_injection: bool | None = None
    capture: Capture | None = None
    capture_days: Annotated[int, Bounds(1, MAX_CAPTURE_DAYS)] | None = None
    version: int | None = None


class Policies:
    """The policies of this gateway. Who may manage them is checked by the edges.

    The authentication calls `refresh` for every request whose generation is another, and refuses a key whose policy
    does not exist.
    """

    def __init__(self, *, store: Store, clock: Clock, ids: Ids, audit: Audit) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._audit = audit
        self._trail = AuditTrail(audit, "policy")
        self._known: dict[str, ShieldPolicy] = {}

    def refresh(self) -> None:
        """Read the policies again.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        records = self._store.db.read_now(self._store.policies.all)
        self._known = {record.id: record.shield_policy() for record in records}

    def of(self, principal: Principal, default: ShieldPolicy) -> ShieldPolicy:
        """Return the policy of the caller's key, or `default` if the key has none.

        Raises:
            PermissionDenied: the policy of the key does not exist. StoreUnavailable: the policies cannot be read.
        """
        if principal.policy is None:
            return default
        if principal.policy not in self._known:
            self.refresh()
        policy = self._known.get(principal.policy)
        if policy is None:
            raise PermissionDenied(_NO_POLICY)
        return policy

    def draft(self, wanted: WantedPolicy) -> ShieldPolicy:
        """Return what a policy would be that is not made.

        Raises:
            InvalidRequest: a field; `param` says which.
        """
        blank = PolicyRecord(id="", name="draft", created_at=0, created_by="")
        return _changed(blank, wanted).shield_policy()

    async def list(self) -> tuple[PolicyRecord, ...]:
        """Return all policies, oldest first."""
        return await self._store.db.read(self._store.policies.all)

    async def show(self, id_or_name: str) -> PolicyRecord:
        """Return one policy by id or name.

        Raises:
            NotFound: there is none.
        """
        return await self._store.db.read(lambda tx: self._find(tx, id_or_name))

    async def create(self, principal: Principal, wanted: WantedPolicy, context: RequestContext) -> PolicyRecord:
        """Make a policy.

        Raises:
            InvalidRequest: a field; `param` says which. Conflict: the name is taken, or there are too many.
            AuditUnavailable: it was not made.
        """
        blank = PolicyRecord(
            id=self._ids.new("pol"), name="", created_at=self._clock.now_at(), created_by=principal.name
        )
        record = _changed(blank, wanted)

        def work(tx: AuthorityTransaction) -> PolicyRecord:
            if self._store.policies.count(tx) >= MAX_POLICIES:
                raise Conflict(f"There are {MAX_POLICIES} policies; remove some first.")
            self._check_name(tx, record)
            self._store.policies.insert(tx, record)
            self._trail.note(tx, "policy_created", principal, context, id=record.id, after=_shown(record))
            return record

        return await self._audit.commit_authority(work)

    async def change(
        self, principal: Principal, id_or_name: str, wanted: WantedPolicy, context: RequestContext
    ) -> PolicyRecord:
        """Change a policy; what holds already is left alone. It holds for its keys at their next request.

        Raises:
            InvalidRequest: a field; `param` says which. NotFound: there is none.
            Conflict: another version, or the name is taken. AuditUnavailable: nothing was changed.
        """

        def work(tx: AuthorityTransaction) -> PolicyRecord:
            before = self._find(tx, id_or_name)
            check_version(wanted.version, before.version, "policy")
            after = _changed(before, wanted)
            if after == before:
                return before
            self._check_name(tx, after)
            self._store.policies.change(tx, after)
            shown = {"before": _shown(before), "after": _shown(after)}
            self._trail.note(tx, "policy_changed", principal, context, id=before.id, **shown)
            return self._find(tx, before.id)

        return await self._audit.commit_authority(work)

    async def remove(self, principal: Principal, id_or_name: str, context: RequestContext) -> PolicyRecord:
        """Remove a policy and return what it was.

        Raises:
            NotFound: there is none. Conflict: a key that is not revoked has it. AuditUnavailable: it is still there.
        """
        now_at = self._clock.now_at()

        def work(tx: AuthorityTransaction) -> PolicyRecord:
            record = self._find(tx, id_or_name)
            if self._store.keys.count_of_policy(tx, record.id, now_at=now_at):
                raise Conflict("API keys have this policy; give them another one first.")
            self._store.policies.remove(tx, record.id)
            self._trail.note(tx, "policy_removed", principal, context, id=record.id, before=_shown(record))
            return record

        return await self._audit.commit_authority(work)

    def _find(self, tx: Transaction, id_or_name: str) -> PolicyRecord:
        record = self._store.policies.find(tx, id_or_name)
        if record is None:
            raise NotFound("There is no such policy.")
        return record

    def _check_name(self, tx: Transaction, record: PolicyRecord) -> None:
        other = self._store.policies.find(tx, record.name)
        if other is not None and other.id != record.id:
            raise Conflict("There is a policy of this name already.", param="name")


def _changed(record: PolicyRecord, wanted: WantedPolicy) -> PolicyRecord:
    """Return the record with what is wanted, checked."""
    after = replace(
        record,
        name=record.name if wanted.name is None else read_plain_name(wanted.name),
        mode=wanted.mode or record.mode,
        block_score=record.block_score if wanted.block_score is None else wanted.block_score,
        review_score=record.review_score if wanted.review_score is None else wanted.review_score,
        category_actions=record.category_actions if wanted.category_actions is None else dict(wanted.category_actions),
        unscannable=wanted.unscannable or record.unscannable,
        outbound=wanted.outbound or record.outbound,
        tool_injection=record.tool_injection if wanted.tool_injection is None else wanted.tool_injection,
        capture=wanted.capture or record.capture,
        capture_days=record.capture_days if wanted.capture_days is None else wanted.capture_days,
    )
    for name in ("block_score", "review_score"):
        if not 1 <= getattr(after, name) <= HIGHEST_SCORE:
            raise InvalidRequest(f"{name} must be 1 to {HIGHEST_SCORE}.", param=name)
    if after.review_score > after.block_score:
        raise Conflict("review_score must not be more than block_score.", param="review_score")
    if not 1 <= after.capture_days <= MAX_CAPTURE_DAYS:
        raise InvalidRequest(f"capture_days must be 1 to {MAX_CAPTURE_DAYS}.", param="capture_days")
    for category in after.category_actions:
        if category not in CATEGORIES:
            raise InvalidRequest(
                f"Unknown category; the categories are {', '.join(sorted(CATEGORIES))}.",
                param=f"category_actions.{category[:64]}",
            )
    return after


def _shown(record: PolicyRecord) -> dict[str, object]:
    """Return what the audit log keeps of a policy."""
    return {
        "name": record.name,
        "mode": record.mode,
        "block_score": record.block_score,
        "review_score": record.review_score,
        "category_actions": dict(record.category_actions),
        "unscannable": record.unscannable,
        "outbound": record.outbound,
        "tool_injection": record.tool_injection,
        "capture": record.capture,
        "capture_days": record.capture_days,
    }
