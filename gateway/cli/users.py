"""`users create|list|passwd|disable`: the use-cases of the internal API for a host without a browser."""

import argparse

from gateway.app import Lasting
from gateway.auth.passwords import make_password
from gateway.cli.command import OK, Command, Console, nothing, table
from gateway.cli.manage import context, with_records
from gateway.domain.principals import Role, local
from gateway.domain.users import MAX_PASSWORD_CHARS, ChangedUser, NewUser
from gateway.errors import InvalidRequest
from gateway.operations.users import view_user
from gateway.schema import encode

PASSWORD_RANDOM_BYTES = 20


def create_user(options: argparse.Namespace, console: Console) -> int:
    """Create a user, with a password from stdin or one that is printed once, alone on stdout."""
    role = read_role(options.role)

    async def work(gateway: Lasting) -> int:
        password = read_password(options, console) or make_password(gateway.ids.random_bytes(PASSWORD_RANDOM_BYTES))
        new = NewUser(username=options.username, password=password, role=role)
        user = await gateway.users.create(local("cli"), new, context(gateway))
        console.note(f"{user.id} ({user.username}, {user.role.value}) created")
        show_password(options, console, password)
        return OK

    return with_records(options, work)


def list_users(options: argparse.Namespace, console: Console) -> int:
    """List the users."""

    async def work(gateway: Lasting) -> int:
        views = [encode(view_user(user)) for user in await gateway.users.list()]
        if options.json:
            console.print_json(views)
            return OK
        names = ("id", "username", "role", "status", "created_at")
        rows = [tuple(str(view[name]) for name in names) for view in views]
        console.print(table(rows, ("ID", "USERNAME", "ROLE", "STATUS", "CREATED")))
        return OK

    return with_records(options, work)


def set_password(options: argparse.Namespace, console: Console) -> int:
    """Give a user another password and end all their sessions."""

    async def work(gateway: Lasting) -> int:
        password = read_password(options, console) or make_password(gateway.ids.random_bytes(PASSWORD_RANDOM_BYTES))
        wanted = ChangedUser(password=password)
        user = await gateway.users.change(local("cli"), options.user, wanted, context(gateway))
        console.note(f"{user.username} has another password; all their sessions are over")
        show_password(options, console, password)
        return OK

    return with_records(options, work)


def disable(options: argparse.Namespace, console: Console) -> int:
    """Keep a user out, or let them in again."""
    wanted = ChangedUser(disabled=not options.undo)

    async def work(gateway: Lasting) -> int:
        user = await gateway.users.change(local("cli"), options.user, wanted, context(gateway))
        console.note(f"{user.username} is {view_user(user).status}")
        return OK

    return with_records(options, work)


def read_role(text: str) -> Role:
    """Return the role of this name."""
    known = [role.value for role in Role]
    if text not in known:
        raise InvalidRequest(f"--role must be one of {', '.join(known)}", param="--role")
    return Role(text)


def read_password(options: argparse.Namespace, console: Console) -> str | None:
    """Return the first line of stdin if that was asked for. A password on the command line would be in `ps`."""
    if not options.password_stdin:
        return None
    raw = console.stdin.readline(4 * MAX_PASSWORD_CHARS + 2).rstrip(b"\r\n")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest("the password on stdin is not UTF-8", param="password") from None


def show_password(options: argparse.Namespace, console: Console, password: str) -> None:
    """Print a password that was made here. One that was typed is known."""
    if not options.password_stdin:
        console.note("the password is shown this once:")
        console.print(password)


def declare_create_user(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `users create`."""
    parser.add_argument("--username", required=True, help="what the user signs in with")
    parser.add_argument("--role", required=True, help=f"one of {', '.join(role.value for role in Role)}")
    declare_password(parser)


def declare_password(parser: argparse.ArgumentParser) -> None:
    """Declare where a password comes from."""
    parser.add_argument("--password-stdin", action="store_true", help="read the password from stdin, not make one")


def declare_user(parser: argparse.ArgumentParser) -> None:
    """Declare the user."""
    parser.add_argument("user", help="id (usr_…) or name of the user")


def declare_passwd(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `users passwd`."""
    declare_user(parser)
    declare_password(parser)


def declare_disable(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `users disable`."""
    declare_user(parser)
    parser.add_argument("--undo", action="store_true", help="let the user in again")


COMMANDS = (
    Command(
        "users create",
        "Create a user; a password that was made is printed once, alone on stdout.",
        "gateway.pyz users create --username alice --role operator",
        declare_create_user,
        create_user,
    ),
    Command("users list", "List the users.", "gateway.pyz users list --json", nothing, list_users, has_json=True),
    Command(
        "users passwd",
        "Give a user another password; ends all their sessions.",
        "gateway.pyz users passwd alice --password-stdin < password.txt",
        declare_passwd,
        set_password,
    ),
    Command(
        "users disable",
        "Keep a user out and end all their sessions.",
        "gateway.pyz users disable alice",
        declare_disable,
        disable,
    ),
)
