"""`keys`, `users`, `access` and `policies`: who may use the gateway, and on which terms."""

import argparse
from collections.abc import Sequence

from gateway.auth.passwords import make_password
from gateway.cli.command import Console
from gateway.cli.resource import Flag, Row, Values, View, as_text, commands_of, expiry
from gateway.clock import Clock, Ids
from gateway.domain.access_list import EntryType
from gateway.domain.policies import MAX_CAPTURE_DAYS
from gateway.domain.users import MAX_PASSWORD_CHARS
from gateway.errors import InvalidRequest
from gateway.operations.access_list import OPERATIONS as ACCESS_OPERATIONS
from gateway.operations.keys import KEY_OPERATIONS, POLICY_OPERATIONS
from gateway.operations.users import USER_OPERATIONS

PASSWORD_RANDOM_BYTES = 20
# Not the password itself: `ps` shows every command line to all users of the host.
_FROM_STDIN = Flag("password", "read the password from stdin instead of generating one", "password_stdin", sets=True)
_FORCE = Flag("force", "even if it locks out this host or every API key")
_EXPIRES = expiry("expires_at", "such as 90d or 2030-01-31; never if left out", "expires")


def _password(values: Values, options: argparse.Namespace, console: Console) -> None:
    """Complete the values with the first line of stdin, if that was asked for, else with a new random password."""
    if not options.password:
        values["password"] = make_password(Ids(Clock()).random_bytes(PASSWORD_RANDOM_BYTES))
        return
    raw = console.stdin.readline(4 * MAX_PASSWORD_CHARS + 2).rstrip(b"\r\n")
    try:
        values["password"] = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest("the password on stdin is not UTF-8", param="password") from None


def _print_password(view: View, values: Values, options: argparse.Namespace, console: Console) -> None:
    if not options.password:
        console.note("the password is shown this once:")
        console.print(str(values["password"]))


def _read_actions(texts: Sequence[str]) -> dict[str, str]:
    """Read ``pii=redact``, as often as it was given. ``none`` alone removes all."""
    if list(texts) == ["none"]:
        return {}
    if any("=" not in text for text in texts):
        raise InvalidRequest("--category must be a category, = and an action, such as pii=redact", param="--category")
    return {category: action for category, _, action in (text.partition("=") for text in texts)}


_KEYS = commands_of(
    "keys",
    KEY_OPERATIONS,
    "id (key_…) or prefix (svc_…) of the key",
    Row(
        "create",
        "Create an API key; it is printed once, as the only output on stdout.",
        "--name ci --scopes shield:scan --expires 90d",
        flags=(
            Flag("name", "what the key is for"),
            Flag("scopes", "comma-separated, such as shield:scan,chat:completions"),
            Flag("rate_limit", "requests a minute (60)"),
            _EXPIRES,
            Flag("policy", "id or name of the policy that applies to the key"),
            Flag("models", "comma-separated models it may use, * and ? stand for any; all if left out"),
        ),
        note="{id} created; the key is shown this once:",
        prints="key",
    ),
    Row(
        "list",
        "List the API keys.",
        "--json",
        columns=(
            *("id", "name", "prefix", "status", ("PER MINUTE", "rate_limit")),
            ("SCOPES", lambda view: as_text(view["scopes"], separator=",", limit=1_000)),
            ("LAST USED", lambda view: view["last_used_at"] or "never used"),
        ),
    ),
    Row("show", "Show one API key's record.", "svc_1a2b3c", has_json=True),
    Row("revoke", "Revoke an API key.", "svc_1a2b3c", note="{id} ({name}) is revoked"),
    Row(
        "rotate",
        "Create a replacement key; the old one is revoked when the grace period ends.",
        "svc_1a2b3c --grace-seconds 3600",
        flags=(Flag("grace_seconds", "how long the old key still works (86400, a day)"),),
        note="{id} replaces {rotated_from}; the new key is shown this once:",
        prints="key",
    ),
)

_USERS = commands_of(
    "users",
    USER_OPERATIONS,
    "id (usr_…) or name of the user",
    Row(
        "create",
        "Create a user; a generated password is printed once, as the only output on stdout.",
        "--username alice --role operator",
        flags=(Flag("username", "name to sign in with"), Flag("role"), _FROM_STDIN),
        before=_password,
        note="{id} ({username}, {role}) created",
        after=_print_password,
    ),
    Row("list", "List the users.", "--json", columns=("id", "username", "role", "status", ("CREATED", "created_at"))),
    Row(
        "passwd",
        "Set a new password for a user and end all their sessions.",
        "alice --password-stdin < password.txt",
        flags=(_FROM_STDIN,),
        before=_password,
        note="{username} has a new password; all their sessions are ended",
        after=_print_password,
    ),
    Row(
        "disable",
        "Disable a user and end all their sessions.",
        "alice",
        fixed={"disabled": True},
        note="{username} is {status}",
    ),
    Row("enable", "Enable a user again.", "alice", fixed={"disabled": False}, note="{username} is {status}"),
)

_ACCESS = commands_of(
    "access",
    ACCESS_OPERATIONS,
    "id (acl_…) of the entry",
    Row(
        "list",
        "List the access list.",
        "--json",
        columns=(
            *("id", "list", "type", "value", "scope", "hits"),
            ("EXPIRES", lambda view: view["expires_at"] or "never"),
            ("REASON", lambda view: as_text(view["reason"] or "")),
        ),
    ),
    Row(
        "add",
        "Allow or deny an address, key, model, provider, tool, agent or domain.",
        "--list deny --type CIDR --value 192.0.2.0/24 --reason abuse --expires 7d",
        flags=(
            Flag("list", "allow or deny", read=str.lower),
            Flag("type", f"one of {', '.join(EntryType)}", read=str.upper),
            Flag("value", "address, network, key, domain, or a name that may contain * and ?"),
            Flag("scope", "id or prefix of the one key it applies to", metavar="KEY"),
            Flag("reason", "why, for later readers of the list"),
            *(_EXPIRES, _FORCE),
        ),
        note="{list} {type} {value} is on the access list:",
        prints="id",
    ),
    Row(
        "remove",
        "Remove an entry of the access list.",
        "acl_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        flags=(_FORCE,),
        note="{id} ({type} {value}) is removed",
    ),
)

_POLICY_FIELDS = (
    Flag("mode"),
    Flag("block_score", "lowest score of a BLOCK, 1 to 100"),
    Flag("review_score", "lowest score of a REVIEW, 1 to 100"),
    Flag(
        "category_actions",
        "weight of a category: block, review, allow or redact; repeat for more categories; none removes all",
        "category",
        "NAME=ACTION",
        read=_read_actions,
        repeats=True,
    ),
    Flag("unscannable", "allow, review or block parts that cannot be read"),
    Flag("outbound", "block or redact replies"),
    Flag("capture", "which texts to store: none, redacted or full"),
    Flag("capture_days", f"how long texts are kept, 1 to {MAX_CAPTURE_DAYS} (7)"),
)
_POLICIES = commands_of(
    "policies",
    POLICY_OPERATIONS,
    "id (pol_…) or name of the policy",
    Row(
        "list",
        "List the policies that keys may have.",
        "--json",
        columns=(
            *("id", "name", "mode", ("BLOCK", "block_score"), ("REVIEW", "review_score")),
            ("CATEGORIES", "category_actions"),
        ),
    ),
    Row(
        "create",
        "Create a policy for keys: mode, thresholds and weights.",
        "--name lab --mode observe --category pii=redact",
        flags=(Flag("name", "name of the policy"), *_POLICY_FIELDS),
        note="{name} is a policy; give it to a key with `keys create --policy` or the API:",
        prints="id",
    ),
    Row(
        "update",
        "Change a policy; it applies to its keys from their next request.",
        "lab --block-score 80",
        flags=(Flag("name", "new name"), *_POLICY_FIELDS),
        note="{id} ({name}) has version {version}",
    ),
    Row("remove", "Remove a policy that no key has.", "lab", note="{id} ({name}) is removed"),
)

COMMANDS = (*_KEYS, *_USERS, *_ACCESS, *_POLICIES)
