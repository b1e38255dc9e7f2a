"""Who is calling, what a key may do (scopes), what a role may do (permissions), and where a request came from."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from gateway.errors import InvalidRequest
from gateway.records import record


class Scope(StrEnum):
    """What an API key may do on `/api/v1`."""

    SHIELD_SCAN = "shield:scan"
    SHIELD_READ = "shield:read"
    AGENTS_READ = "agents:read"
    ALERTS_READ = "alerts:read"
    AUDIT_READ = "audit:read"
    FLEET_READ = "fleet:read"
    CHAT_COMPLETIONS = "chat:completions"


class Permission(StrEnum):
    """What a role may do on the internal API: `read` or `manage` of one resource."""

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
    """What a user is. Each role is a set of permissions."""

    ADMIN = "admin"
    SECURITY_MANAGER = "security_manager"
    OPERATOR = "operator"
    VIEWER = "viewer"
    AUDITOR = "auditor"


ALL_SCOPES = frozenset(Scope)
ALL_PERMISSIONS = frozenset(Permission)
_READ = frozenset(one for one in Permission if one.value.endswith(":read"))
_OF_ADMIN_ALONE = {Permission.USERS_READ, Permission.USERS_MANAGE, Permission.SETTINGS_MANAGE}
_OF_OPERATOR = {
    Permission.API_KEYS_MANAGE,
    Permission.PROVIDERS_MANAGE,
    Permission.BUDGETS_MANAGE,
    Permission.ALERTS_MANAGE,
    Permission.AGENTS_MANAGE,
    Permission.REPORTS_MANAGE,
}

ROLE_PERMISSIONS: Mapping[Role, frozenset[Permission]] = MappingProxyType(
    {
        Role.ADMIN: ALL_PERMISSIONS,
        Role.SECURITY_MANAGER: ALL_PERMISSIONS - _OF_ADMIN_ALONE,
        Role.OPERATOR: (_READ - _OF_ADMIN_ALONE) | _OF_OPERATOR,
        Role.VIEWER: _READ - _OF_ADMIN_ALONE - {Permission.AUDIT_READ, Permission.API_KEYS_READ},
        Role.AUDITOR: _READ | {Permission.REPORTS_MANAGE},
    }
)


# Nobody grants more than they hold: a scope is held by whoever may do the same on the internal API.
SCOPE_NEEDS: Mapping[Scope, Permission] = MappingProxyType(
    {
        Scope.SHIELD_SCAN: Permission.SHIELD_READ,
        Scope.SHIELD_READ: Permission.SHIELD_READ,
        Scope.AGENTS_READ: Permission.AGENTS_READ,
        Scope.ALERTS_READ: Permission.ALERTS_READ,
        Scope.AUDIT_READ: Permission.AUDIT_READ,
        Scope.FLEET_READ: Permission.FLEET_READ,
        Scope.CHAT_COMPLETIONS: Permission.API_KEYS_MANAGE,
    }
)


def scopes_within(permissions: Collection[Permission]) -> frozenset[Scope]:
    """Return the scopes that whoever has these permissions may hand on."""
    return frozenset(scope for scope, needed in SCOPE_NEEDS.items() if needed in permissions)


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling, complete: nothing more is looked up to decide what this caller may do.

    kind: an API key, a signed-in user, or the local automation (commands and MCP on this host).
    id: `key_…`, `usr_…`, or the local program's name. name: for people to read.
    rate_limit: requests in any 60 seconds, None for no limit. policy: id of its own one, None for that of the settings.
    models: globs of the models it may use, none for all. lineage: id of the first key of its row of rotations.
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
    """Return the principal of a program that runs on this host with the data folder in its hands, such as ``cli``."""
    return Principal(kind="local", id=name, name=name, scopes=ALL_SCOPES, permissions=ALL_PERMISSIONS)


REQUEST_ID = "req_[0-9A-HJKMNP-TV-Z]{26}"
_REQUEST_ID = re.compile(REQUEST_ID)


def read_request_id(text: str, *, param: str = "request_id") -> str:
    """Return the id of a request as it is stored: lower-case letters and blanks around it are pardoned.

    Raises:
        InvalidRequest: it is none.
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


@record
class RequestContext:
    """Where a request came from, for the audit.

    ip: the client's address in text, None for a local program. traceparent: W3C, well-formed or None.
    agent: what the caller says of itself in `X-Service-Agent`, unchecked.
    """

    request_id: str
    ip: str | None = None
    user_agent: str | None = None
    traceparent: str | None = None
    agent: str | None = None
