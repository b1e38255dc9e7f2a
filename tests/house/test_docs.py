"""The tables of the documents are those of the code. `python tests/house/test_docs.py` writes them anew."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pytest

from gateway import errors, settings
from gateway.cli import main
from gateway.domain.principals import ROLE_PERMISSIONS, Permission, Role
from gateway.mcp.tools import TOOLS
from gateway.metrics import FAMILIES
from gateway.operations.every import INTERNAL_OPERATIONS, PUBLIC_OPERATIONS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def commands() -> str:
    return table(("command", "does"), [(f"`{one.name}`", one.summary) for one in main.commands()])


def operations() -> str:
    rows = [
        (
            f"`{one.route[0]} {one.route[1]}`",
            f"`{one.needs}`"
            if one.needs
            else {"open": "nothing", "optional": "nothing; a key tells more"}[one.door.value],
            one.summary,
        )
        for one in PUBLIC_OPERATIONS
    ]
    return table(("operation", "needs", "does"), rows)


def internal() -> str:
    rows = [
        (
            f"`{one.route[0]} {one.route[1]}`",
            f"`{one.needs}`" if one.needs else {"session": "a session", "sign_in": "a password"}[one.door.value],
            one.summary,
        )
        for one in INTERNAL_OPERATIONS
    ]
    return table(("operation", "needs", "does"), rows)


def tools() -> str:
    return table(("tool", "does"), [(f"`{tool.name}`", tool.description) for tool in TOOLS])


def setting_rows() -> str:
    rows = []
    for row in settings.rows():
        shown = (
            "the user's data folder"
            if row.name == "data_dir"
            else ""
            if row.default in (None, ())
            else ", ".join(row.default)
            if isinstance(row.default, tuple)
            else str(row.default)
        )
        rows.append((f"`{row.name}`", f"`{settings.variable(row)}`", shown, row.metadata["about"]))
    return table(("setting", "variable", "default", "what it is"), rows)


def metrics() -> str:
    rows = [
        (f"`{one.name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels) or "–", one.help)
        for one in FAMILIES
    ]
    return table(("metric", "kind", "labels", "meaning"), rows)


def roles() -> str:
    def held(role: Role, resource: str) -> str:
        words = {one.value.partition(":")[2] for one in ROLE_PERMISSIONS[role] if one.value.startswith(f"{resource}:")}
        return "manage" if "manage" in words else "read" if "read" in words else ""

    resources = dict.fromkeys(one.value.partition(":")[0] for one in Permission)
    rows = [(f"`{one}`", *(held(role, one) for role in Role)) for one in resources]
    return table(("resource", *(f"`{role.value}`" for role in Role)), rows)


# By code, what the caller should do; and what it means where no class of `errors` has the code.
ADVICE = {
    "invalid_request": "Correct the field that `param` names.",
    "invalid_json": "Send strict JSON in UTF-8: no comments, no repeated names, no NaN.",
    "unsupported_value": "Use the value that the message suggests, such as the base URL `/api/v2` for streams.",
    "content_policy_violation": "Look up the `request_id` to see why. Do not send the same prompt again.",
    "missing_api_key": "Send the key in `X-Service-Key` or `Authorization: Bearer`.",
    "invalid_api_key": "Send a key of the gateway, not that of the provider.",
    "not_signed_in": "Sign in.",
    "bad_credentials": "Check name and password.",
    "insufficient_scope": "Give the key the scope that the message names.",
    "key_revoked": "Use the new key.",
    "key_expired": "Create or rotate the key.",
    "permission_denied": "Ask for a role with the permission, or correct the policy of the key.",
    "csrf_failed": "Send the token of the session as `X-CSRF-Token`.",
    "access_denied": "Look up the entry in the access list, or the agent, that the message names.",
    "not_found": "Check the path, the id or the model.",
    "method_not_allowed": "Use a method of the header `Allow`.",
    "request_timeout": "Send the request faster.",
    "conflict": "Read the record again, then decide.",
    "body_too_large": "Send less, or raise the setting that the message names.",
    "uri_too_long": "Shorten the URL.",
    "unsupported_media_type": "Send `Content-Type: application/json`, uncompressed.",
    "expectation_failed": "Send no `Expect` but `100-continue`.",
    "host_not_allowed": "Use a name of this host.",
    "rate_limited": "Wait for `Retry-After`.",
    "budget_exceeded": "Set `max_tokens`, wait for `Retry-After`, or raise the budget.",
    "login_throttled": "Wait for `Retry-After`.",
    "headers_too_large": "Send fewer or shorter headers.",
    "internal_error": "Look up the `request_id` in the log, and report it.",
    "not_implemented": "Send the body with `Content-Length` or chunked.",
    "upstream_unavailable": "Test the provider. If `x-should-retry` is `false`, do not repeat the request.",
    "overloaded": "Wait for `Retry-After`, or add workers.",
    "shield_unavailable": "Run `doctor`. Nothing passes unscanned.",
    "audit_unavailable": "Free disk space, or repair the data folder.",
    "http_version_not_supported": "Use HTTP/1.1.",
}
MEANING = {
    "method_not_allowed": "The path exists, but not with this method.",
    "request_timeout": "The request did not arrive in time.",
    "uri_too_long": "The URL is over the limit.",
    "expectation_failed": "The gateway does not know this `Expect` header.",
    "host_not_allowed": "The `Host` header is not a name of this host (MCP).",
    "headers_too_large": "The headers are over the limit.",
    "internal_error": "The gateway has a fault.",
    "not_implemented": "The gateway does not know this transfer encoding.",
    "http_version_not_supported": "The gateway speaks HTTP/1.0 and HTTP/1.1.",
}


def error_rows() -> str:
    classes = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, errors.GatewayError)]
    by_code = {one.code: (one.__doc__ or "").partition("\n")[0] for one in reversed(classes)} | MEANING
    rows = [(str(status), f"`{code}`", by_code[code], ADVICE[code]) for code, status in errors.STATUS_BY_CODE.items()]
    return table(("status", "code", "meaning", "what to do"), rows)


# By the name of the table, its page.
TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "commands": ("reference/cli.md", commands),
    "operations": ("reference/api.md", operations),
    "internal operations": ("reference/internal-api.md", internal),
    "tools": ("reference/mcp-tools.md", tools),
    "settings": ("reference/settings.md", setting_rows),
    "metrics": ("reference/metrics.md", metrics),
    "errors": ("reference/errors.md", error_rows),
    "roles": ("howto/users.md", roles),
}


def place(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name} -->\n)(.*?)(<!-- end -->)", re.DOTALL)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_the_documents_is_the_table_of_the_code(name: str) -> None:
    page, render = TABLES[name]
    found = place(name).search((DOCS / page).read_text("utf-8"))
    assert found, f"{page} lost its place for {name}"
    assert found[2].strip() == render().strip(), "run: python tests/house/test_docs.py"


def test_the_readme_is_short_and_leads_to_the_documents() -> None:
    text = (DOCS.parent / "README.md").read_text("utf-8")
    assert len(text.encode()) <= 8_192
    assert "(docs/README.md)" in text
    assert [link for link in re.findall(r"\]\(([^)#]+)", text) if not (DOCS.parent / link).exists()] == []


def test_manage_includes_read_in_every_role() -> None:
    for held in ROLE_PERMISSIONS.values():
        for one in held:
            if one.value.endswith(":manage"):
                assert Permission(one.value.replace(":manage", ":read")) in held


if __name__ == "__main__":
    for name, (page, render) in TABLES.items():
        path = DOCS / page
        text = path.read_text("utf-8")
        begin, _, end = place(name).search(text).groups()
        path.write_text(place(name).sub(f"{begin}\n{render()}\n\n{end}".replace("\\", "\\\\"), text), "utf-8")
