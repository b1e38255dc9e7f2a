"""Principals, the scopes of keys, the permissions of roles, and the callers of requests."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from gateway.errors import InvalidRequest


class Scope(StrEnum):
    """A right of an API key on `/api/v1`."""

    SHIELD_SCAN = "shield:scan"
    SHIELD_READ = "shield:read"
    AGENTS_READ = "agents:read"
    ALERTS_READ = "alerts:read"
    AUDIT_READ = "audit:read"
    FLEET_READ = "fleet:read"
    CHAT_COMPLETIONS = "chat:completions"


class Permission(StrEnum):
    """A right of a role on the internal API: to read or manage one resource."""

    API_KEYS_READ = "api_keys:read"
    API_KEYS_MANAGE = "api_keys:manage"
    USERS_READ = "users:read"
    USERS_MANAGE = "users:manage"
    ACCESS_READ = "access:read"
    ACCESS_MANAGE = "access:manage"
    PROVIDERS_READ = "providers:read"
    PROVIDERS_MANAGE = "providers:manage"
    BUDGETS_READ = "budgets:read"
    BUDGETS_MANAGE = "budgets:manage"
    RISK_ACCEPTANCES_READ = "risk_acceptances:read"
    RISK_ACCEPTANCES_MANAGE = "risk_acceptances:manage"
    POLICIES_READ = "policies:read"
    POLICIES_MANAGE = "policies:manage"
    ALERTS_READ = "alerts:read"
    ALERTS_MANAGE = "alerts:manage"
    AGENTS_READ = "agents:read"
    AGENTS_MANAGE = "agents:manage"
    SHIELD_READ = "shield:read"
    SHIELD_MANAGE = "shield:manage"
    POSTURE_READ = "posture:read"
    POSTURE_MANAGE = "posture:manage"
    REPORTS_READ = "reports:read"
    REPORTS_MANAGE = "reports:manage"
    AUDIT_READ = "audit:read"
    FLEET_READ = "fleet:read"
    TRAFFIC_READ = "traffic:read"
    SETTINGS_READ = "settings:read"
    SETTINGS_MANAGE = "settings:manage"


class Role(StrEnum):
    """The role of a user: a set of permissions."""

    ADMIN = "admin"
    SECURITY_MANAGER = "security_manager"
    OPERATOR = "operator"
    VIEWER = "viewer"
    AUDITOR = "auditor"


ALL_SCOPES = frozenset(Scope)
ALL_PERMISSIONS = frozenset(Permission)
_READ = frozenset(one for one in Permission if one.value.endswith(":read"))
_ADMIN_ONLY = {Permission.USERS_READ, Permission.USERS_MANAGE, Permission.SETTINGS_MANAGE}
_OPERATOR_MANAGES = {
    Permission.API_KEYS_MANAGE,
    Permission.PROVIDERS_MANAGE,
    Permission.BUDGETS_MANAGE,
    Permission.ALERTS_MANAGE,
    Permission.AGENTS_MANAGE,
    Permission.REPORTS_MANAGE,
}

ROLE_PERMISSIONS: Mapping[Role, frozenset[Permission]] = {
    Role.ADMIN: ALL_PERMISSIONS,
    Role.SECURITY_MANAGER: ALL_PERMISSIONS - _ADMIN_ONLY,
    Role.OPERATOR: (_READ - _ADMIN_ONLY) | _OPERATOR_MANAGES,
    Role.VIEWER: _READ - _ADMIN_ONLY - {Permission.AUDIT_READ, Permission.API_KEYS_READ},
    Role.AUDITOR: _READ | {Permission.REPORTS_MANAGE},
}

# A principal grants only scopes whose counterpart on the internal API it may use itself.
SCOPE_NEEDS: Mapping[Scope, Permission] = {
    Scope.SHIELD_SCAN: Permission.SHIELD_READ,
    Scope.SHIELD_READ: Permission.SHIELD_READ,
    Scope.AGENTS_READ: Permission.AGENTS_READ,
    Scope.ALERTS_READ: Permission.ALERTS_READ,
    Scope.AUDIT_READ: Permission.AUDIT_READ,
    Scope.FLEET_READ: Permission.FLEET_READ,
    Scope.CHAT_COMPLETIONS: Permission.API_KEYS_MANAGE,
}


def scopes_within(permissions: Collection[Permission]) -> frozenset[Scope]:
    """Return the scopes that a principal with these permissions may grant."""
    return frozenset(scope for scope, needed in SCOPE_NEEDS.items() if needed in permissions)


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request, with everything that authorization needs.

    kind: an API key, a signed-in user, or a local program (commands and MCP on this host). id: `key_…`, `usr_…`, or the
    name of the local program. rate_limit: requests in any 60 seconds, None for no limit. policy: an id, None for the
    policy of the settings. models: globs of the allowed models, empty for all. lineage: the id of the first key in its
    chain of rotations.
    """

    kind: Literal["key", "user", "local"]
    id: str
    name: str
    scopes: frozenset[Scope]
    permissions: frozenset[Permission]
    key_prefix: str | None = None
    rate_limit: int | None = None
    policy: str | None = None
    models: tuple[str, ...] = ()
    lineage: str | None = None


def local(name: str) -> Principal:
    """Return the principal of a program on this host that can use the data folder, such as ``cli``."""
    return Principal(kind="local", id=name, name=name, scopes=ALL_SCOPES, permissions=ALL_PERMISSIONS)


REQUEST_ID = "req_[0-9A-HJKMNP-TV-Z]{26}"
_REQUEST_ID = re.compile(REQUEST_ID)


def read_request_id(text: str, *, param: str = "request_id") -> str:
    """Return a request id in stored form. Lower-case letters and surrounding blanks are accepted.

    Raises:
        InvalidRequest: the text is no request id.
    """
    prefix, _, rest = text.strip().partition("_")
    found = f"{prefix.lower()}_{rest.upper()}"
    if _REQUEST_ID.fullmatch(found) is None:
        raise InvalidRequest(
            f"{param} must be the id of a request: req_ and 26 letters and digits, as the answer's "
            "X-Service-Request-Id has it.",
            param=param,
        )
    return found


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The origin of a request, for the audit log.

    ip: the address of the client, None for a local program. traceparent: W3C, well-formed or None. agent: the
    unchecked content of `X-Service-Agent`.
    """

    request_id: str
    ip: str | None = None
    user_agent: str | None = None
    traceparent: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request, and where it comes from."""

    principal: Principal
    context: RequestContext
