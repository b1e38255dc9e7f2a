"""`users create|list|passwd|disable`: who may sign in. Rules are kept in `services.users`."""

import argparse
from functools import partial

from gateway.auth.passwords import make_password
from gateway.cli.command import OK, Console
from gateway.cli.resource import Flag, Row, Values, View, commands_of
from gateway.clock import SystemClock, SystemIds
from gateway.domain.users import MAX_PASSWORD_CHARS
from gateway.errors import InvalidRequest
from gateway.operations.users import USER_OPERATIONS

PASSWORD_RANDOM_BYTES = 20
# Not the password itself: `ps` shows every command line to all users of the host.
_FROM_STDIN = Flag("password", "read the password from stdin instead of generating one", "password_stdin", sets=True)


def _password(values: Values, options: argparse.Namespace, console: Console) -> None:
    """Complete the values with the first line of stdin, if that was asked for, else with a new random password."""
    if not options.password:
        values["password"] = make_password(SystemIds(SystemClock()).random_bytes(PASSWORD_RANDOM_BYTES))
        return
    raw = console.stdin.readline(4 * MAX_PASSWORD_CHARS + 2).rstrip(b"\r\n")
    try:
        values["password"] = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest("the password on stdin is not UTF-8", param="password") from None


def _print_password(done: str, view: View, values: Values, options: argparse.Namespace, console: Console) -> int:
    """Print what was done and, if it was generated here, the password."""
    console.note(done.format_map(view))
    if not options.password:
        console.note("the password is shown this once:")
        console.print(str(values["password"]))
    return OK


COMMANDS = commands_of(
    "users",
    USER_OPERATIONS,
    "id (usr_…) or name of the user",
    Row(
        "create",
        "Create a user; a generated password is printed once, alone on stdout.",
        "--username alice --role operator",
        flags=(Flag("username", "what the user signs in with"), "role", _FROM_STDIN),
        before=_password,
        after=partial(_print_password, "{id} ({username}, {role}) created"),
    ),
    Row(
        "list",
        "List the users.",
        "--json",
        columns={"ID": "id", "USERNAME": "username", "ROLE": "role", "STATUS": "status", "CREATED": "created_at"},
    ),
    Row(
        "passwd",
        "Set a new password for a user and end all their sessions.",
        "alice --password-stdin < password.txt",
        operation="users.change",
        flags=(_FROM_STDIN,),
        before=_password,
        after=partial(_print_password, "{username} has a new password; all their sessions are ended"),
    ),
    Row(
        "disable",
        "Disable a user and end all their sessions.",
        "alice",
        operation="users.change",
        flags=(Flag("disabled", "enable the user again", "undo", sets=False),),
        fixed={"disabled": True},
        note="{username} is {status}",
    ),
)
