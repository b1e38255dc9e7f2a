"""The rows of API keys and their policies. The rules are in `services.keys` and `services.policies`."""

from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

from gateway.app import Gateway
from gateway.domain.keys import (
    DEFAULT_GRACE_SECONDS,
    MAX_GRACE_SECONDS,
    MAX_KEY_LIMIT,
    ChangedKey,
    CreatedKey,
    KeyRecord,
    NewKey,
)
from gateway.domain.paging import PageQuery
from gateway.domain.policies import PolicyRecord
from gateway.domain.principals import Permission, Scope
from gateway.field_types import PlainName
from gateway.operations.operation import ById
from gateway.operations.rows import Noun, paging
from gateway.records import project
from gateway.schema import Bounds
from gateway.services.policies import WantedPolicy
from gateway.services.rule_trials import Replay, ReplayPolicy
from gateway.store.keys import SORTS


@dataclass(frozen=True, slots=True)
class RotateKey:
    """The key `id`, and how long it still works beside the new one."""

    id: str
    grace_seconds: Annotated[int, Bounds(0, MAX_GRACE_SECONDS)] = DEFAULT_GRACE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyView(KeyRecord):
    """The record of a key and its present status."""

    status: Literal["active", "revoked", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedKeyView:
    """A new key. Only this answer contains the key itself."""

    id: str
    name: str
    prefix: str
    scopes: tuple[Scope, ...]
    rate_limit: int
    status: Literal["active", "revoked", "expired"]
    created_at: int
    expires_at: int | None
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatedKeyView(CreatedKeyView):
    """A new key that replaces another. rotated_from: the id of the replaced key."""

    rotated_from: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPolicy(WantedPolicy):
    """A policy to create. A field that is left out has the default of a gateway without settings."""

    name: PlainName
    version: None = field(default=None, metadata={"json_name": None})


def _view(gateway: Gateway, record: KeyRecord) -> KeyView:
    return project(KeyView, record, status=record.status_at(gateway.clock.now_at()))


def _view_new(cls: type[CreatedKeyView], gateway: Gateway, made: CreatedKey) -> CreatedKeyView:
    return project(cls, made.record, key=made.key, status=made.record.status_at(gateway.clock.now_at()))


_KEYS = Noun(
    "keys", KeyView, Permission.API_KEYS_READ, Permission.API_KEYS_MANAGE, view=_view, path="/api/config/api-keys"
)
_POLICIES = Noun("policies", PolicyRecord, Permission.POLICIES_READ, Permission.POLICIES_MANAGE)

KEY_OPERATIONS = (
    _KEYS.list("List the API keys, newest first.", takes=PageQuery, query=paging(MAX_KEY_LIMIT, sorts=SORTS)),
    _KEYS.create(
        NewKey,
        "Create a key: `name`, `scopes`, `rate_limit`?, `expires_at`?, `policy`?, `models`?. Shows `key` once.",
        gives=CreatedKeyView,
        view=partial(_view_new, CreatedKeyView),
        has_secret=True,
    ),
    _KEYS.show("Show one API key's record, by id or prefix."),
    _KEYS.change(
        ChangedKey,
        "Change `name`, `scopes`, `rate_limit`, `expires_at`, `policy` or `models`; `version` or `If-Match`.",
    ),
    _KEYS.row(
        "revoke", "POST /{id}/revoke", "Revoke an API key. It is refused from now on, by every worker.", takes=ById
    ),
    _KEYS.row(
        "rotate",
        "POST /{id}/rotate",
        "Create a key that replaces this one, which is revoked after `grace_seconds` (24 h).",
        takes=RotateKey,
        gives=RotatedKeyView,
        call=lambda gateway, caller, command: gateway.keys.rotate(
            caller, command.id, grace_seconds=command.grace_seconds
        ),
        view=partial(_view_new, RotatedKeyView),
        status=201,
        has_secret=True,
    ),
)
POLICY_OPERATIONS = (
    _POLICIES.list("List the policies, oldest first."),
    _POLICIES.create(NewPolicy, "Create a policy: `name`, `mode`?, thresholds?, `category_actions`?, `capture`?."),
    _POLICIES.show("Show one policy, by id or name."),
    _POLICIES.change(
        WantedPolicy, "Change a policy; it applies to its keys from their next request. `version` or `If-Match` guards."
    ),
    _POLICIES.remove("Remove a policy that no key has."),
    _POLICIES.row(
        "replay",
        "POST /replay",
        "Show what a draft would change: its fields, and `policy`?, over texts of seven days and the suite.",
        takes=ReplayPolicy,
        gives=Replay,
        call=lambda gateway, caller, command: gateway.rule_trials.replay_policy(caller.principal, command),
    ),
)
OPERATIONS = KEY_OPERATIONS + POLICY_OPERATIONS
