"""Make the first credentials: an admin, and a key with every scope. Made once, as long as there is no admin."""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, count

from gateway.auth import keyhash, passwords
from gateway.domain import keys as key_records
from gateway.domain import users
from gateway.domain.principals import Caller, RequestContext, Role, Scope, local
from gateway.errors import SetupError
from gateway.services.core import Service
from gateway.services.keys import Keys
from gateway.services.provider_keys import read_regular
from gateway.settings import named
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.filelock import private, sync

USERNAME = "admin"
FILE = "first-credentials.txt"
RESERVED = f"{FILE}.new"
"""The same file before the credentials in it are committed."""
_LINES = re.compile(r"username: (\S+)\n(?:password: (\S+)\n)?api_key: (svc_[0-9a-f]{40})\n")
SALT_BYTES = 16


@dataclass(frozen=True, slots=True, repr=False)
class FirstCredentials:
    """Credentials that are shown once. They have no repr, so that no log line can contain them.

    password: None if the operator chose it, who knows it already.
    """

    username: str
    password: str | None
    api_key: str

    def lines(self) -> str:
        password = "" if self.password is None else f"password: {self.password}\n"
        return f"username: {self.username}\n{password}api_key: {self.api_key}\n"


class FirstStart(Service):
    """Makes the first credentials."""

    keys: Keys

    async def make(self, folder: str | None = None, *, password_file: str | None = None) -> FirstCredentials | None:
        """Make an admin and a key with every scope together, or return None if there is an admin.

        Users of other roles do not count, because they cannot assign roles. folder: where the credentials are written
        before the commit; None keeps them in memory only. Call `publish` or `discard` afterwards. Credentials that an
        earlier start committed but did not publish are returned again. password_file: holds the password, which is then
        not among the credentials; None makes a random one.

        Raises:
            SetupError: the credentials cannot be written, the file of another database is there, or `password_file`
                cannot be read. Nothing was made.
            InvalidRequest, Conflict: the password in `password_file` is too weak. Nothing was made.
            AuditUnavailable: nothing was made.
        """
        if await self.store.db.read(lambda tx: self.store.users.count_active(tx, Role.ADMIN)):
            return None if folder is None else await self._left_over(folder)
        if folder is not None:
            _refuse_other(folder)
        caller = Caller(local("first-start"), RequestContext(request_id=self.ids.new("req")))
        salt, password = self.ids.random_bytes(SALT_BYTES), None
        if password_file is not None:
            password_hash = passwords.hash_password(_read_password(password_file), salt)
        else:
            password = passwords.make_password(self.ids.random_bytes(keyhash.KEY_RANDOM_BYTES))
            password_hash = passwords.hash_password(password, salt, is_random=True)

        def work(tx: AuthorityTransaction) -> FirstCredentials | None:
            if self.store.users.count_active(tx, Role.ADMIN):
                return None  # another process was first
            user = users.User(
                id=self.ids.new("usr"),
                username=self._free_name(tx),
                password_hash=password_hash,
                role=Role.ADMIN,
                created_at=self.clock.now_at(),
                disabled_at=None,
            )
            key = self.keys.issue(tx, key_records.NewKey(name="first key", scopes=tuple(Scope)))
            first = FirstCredentials(user.username, password, key.key)
            if folder is not None:
                _reserve(folder, first)  # under the lock of the database, so that one process at a time writes it
            self.store.users.insert(tx, user)
            after = {"username": user.username, "role": user.role.value}
            self.audit.append_change(tx, "user_created", caller, "user", user.id, after=after)
            return first

        return await self.audit.commit_authority(caller, work)

    async def _left_over(self, folder: str) -> FirstCredentials | None:
        """Return credentials that an earlier start committed but did not publish; remove those it did not commit."""
        first = _read_reserved(folder)
        if first is None:
            return None
        digest = keyhash.hash_key(first.api_key)
        if await self.store.db.read(lambda tx: self.store.keys.by_digest(tx, digest)) is not None:
            return first
        discard(folder)
        return None

    def _free_name(self, tx: Transaction) -> str:
        names = chain((USERNAME,), (f"{USERNAME}-{number}" for number in count(2)))
        return next(name for name in names if self.store.users.by_name(tx, name) is None)


def _read_password(path: str) -> str:
    """Return the first line of the file that the operator named, if it may be a password."""
    name = named("first_password_file")
    try:
        raw = read_regular(os.path.realpath(path), 4 * users.MAX_PASSWORD_CHARS + 2)
        password = raw.partition(b"\n")[0].rstrip(b"\r").decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or "no UTF-8"
        raise SetupError(f"{name} cannot be read ({reason}). No credentials were made.") from error
    return users.check_new_password(password, username=USERNAME, param=name)


def _refuse_other(folder: str) -> None:
    path = os.path.join(folder, FILE)
    if os.path.lexists(path):
        raise SetupError(f"{path} belongs to another database: move it away and start again. No credentials were made.")


def publish(folder: str) -> str:
    """Give the written credentials their name, and return the path. Raises SetupError if another file has it by now."""
    reserved, path = os.path.join(folder, RESERVED), os.path.join(folder, FILE)
    try:
        try:
            os.link(reserved, path)  # which, unlike a rename, replaces nothing
        except FileExistsError:
            if not os.path.samefile(reserved, path):  # as it is when a start was killed before it removed `reserved`
                raise
        except PermissionError:  # a file system without hard links
            os.rename(reserved, path)
        with suppress(FileNotFoundError):
            os.unlink(reserved)
        sync(folder)
    except FileExistsError as error:
        raise SetupError(f"{path} is another file. The first credentials are in {reserved}: move them.") from error
    except FileNotFoundError:
        pass  # another process has done it
    return path


def discard(folder: str) -> None:
    """Remove the file of credentials that were shown on the terminal, or that are in no database."""
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, RESERVED))


def _reserve(folder: str, first: FirstCredentials) -> None:
    path = os.path.join(folder, RESERVED)
    try:
        discard(folder)  # of a start that was cut off before its commit
        with open(path, "x", encoding="utf-8", opener=private) as file:
            file.write(first.lines())
        sync(path)
        sync(folder)
    except OSError as error:
        raise SetupError(
            f"The first credentials cannot be written to {path} ({error.strerror}). Nothing was changed."
        ) from error


def _read_reserved(folder: str) -> FirstCredentials | None:
    try:
        with open(os.path.join(folder, RESERVED), encoding="utf-8") as file:
            found = _LINES.fullmatch(file.read(1000))
    except (FileNotFoundError, ValueError):
        return None
    return None if found is None else FirstCredentials(*found.groups())
