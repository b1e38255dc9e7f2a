"""Read the key that a record refers to: in the environment, a file, systemd's credentials or the key file. Store it.

Anyone who may change a provider can send its key to any address. So a reference may lead only to the variables and
folders that the settings allow, and never to a secret of the gateway itself. The gateway checks that when it stores a
reference and whenever it reads the key. No message, log or record contains a key.

A typed-in key and its record are stored together or not at all: the key is written into the key file (see
`store.keyfile`) before the commit of its record. If that commit fails, the key is removed again.
"""

import errno
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

import anyio

from gateway import settings
from gateway.domain.principals import Caller
from gateway.domain.providers import MAX_KEY_BYTES
from gateway.errors import GatewayError, InvalidRequest, SetupError
from gateway.services.resource import R, Resource
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.keyfile import KeyFile

T = TypeVar("T")
STORED = "stored:"
_DROP_SECONDS = 10.0
_KEY = re.compile(r"[!-~]+")


class KeyMissing(GatewayError):
    """The key of a provider is not where its record says. message: why, for the operator, without the key."""

    code = "upstream_unavailable"


class ProviderKeys:
    """The keys of this host's providers, and the secrets that other records refer to in the same way."""

    def __init__(self, keyfile: KeyFile, allowed: settings.Settings) -> None:
        self._keyfile = keyfile
        self._names = allowed.provider_key_env
        self._folders = allowed.provider_key_dirs

    def check(self, reference: str | None, *, param: str) -> None:
        """Raise InvalidRequest, which names the setting, for a reference that the settings do not allow."""
        reason = None if reference is None else self.refusal(reference)
        if reason is not None:
            raise InvalidRequest(f"{param} cannot be used: {reason}.", param=param)

    def read(self, reference: str | None) -> str | None:
        """Return the key that `reference` leads to, None if there is no reference. Reads at most one small file.

        Raises:
            KeyMissing: there is no key, or not one that can be sent.
        """
        if reference is None:
            return None
        refusal = self.refusal(reference)
        if refusal is not None:
            raise KeyMissing(f"The API key cannot be used: {refusal}.")
        kind, _, name = reference.partition(":")
        match kind:
            case "env":
                key = settings.variable_text(name)
                reason = f"the environment variable {name} is not set"
            case "file":
                key = self._read_file(name)
                reason = f"the file {name} is empty"
            case "cred":
                folder = settings.variable_text("CREDENTIALS_DIRECTORY")
                key = None if folder is None else self._read_file(os.path.join(folder, name))
                reason = f"systemd gives no credential {name}: LoadCredential= is missing"
            case _:
                try:
                    key = self._keyfile.get(name)
                except OSError as error:
                    raise KeyMissing(f"The file of API keys cannot be read ({error.strerror}).") from error
                reason = "the key that was typed in is not in the file beside the database: enter it again"
        if not key:
            raise KeyMissing(f"There is no API key: {reason}.")
        if not _KEY.fullmatch(key):
            raise KeyMissing("The API key is more than one line, or holds blanks or signs that cannot be sent.")
        return key

    def problem(self, reference: str | None) -> str | None:
        """Return why `read` would return no key, None if it would or none is needed."""
        try:
            self.read(reference)
        except KeyMissing as error:
            return error.message
        return None

    def refusal(self, reference: str) -> str | None:
        """Return why a reference may not be followed, None if it may. Reads no key."""
        kind, _, name = reference.partition(":")
        match kind:
            case "env":
                if name in settings.own_variables():
                    return f"{name} is a setting of the gateway itself, which is never sent to a provider"
                if not settings.is_provider_variable(name, self._names):
                    allowed = ", ".join(self._names) or "none"
                    return (
                        f"GATEWAY_PROVIDER_KEY_ENV does not allow the variable {name} (now: {allowed}). "
                        "Add it there or rename the variable"
                    )
            case "file":
                path = os.path.realpath(name)
                if self._keyfile.folder is not None and _lies_in(path, self._keyfile.folder):
                    return "a file of the gateway's data folder is no API key"
                if not any(_lies_in(path, folder) for folder in self._folders):
                    allowed = ", ".join(self._folders) or "none"
                    return f"the file lies in no folder that GATEWAY_PROVIDER_KEY_DIRS allows (now: {allowed})"
            case "cred":
                folder = settings.variable_text("CREDENTIALS_DIRECTORY")
                if folder is not None and not _lies_in(os.path.realpath(os.path.join(folder, name)), folder):
                    return f"the credential {name} leads out of the service manager's folder"
        return None

    def _read_file(self, path: str) -> str:
        try:
            raw = read_regular(os.path.realpath(path), MAX_KEY_BYTES + 1)
        except OSError as error:
            raise KeyMissing(f"The file of the API key cannot be read ({error.strerror}).") from error
        if len(raw) > MAX_KEY_BYTES:
            raise KeyMissing("The file of the API key is too long for one.")
        return raw.decode("utf-8", "replace").strip()


def read_regular(path: str, size: int) -> bytes:
    """Return the first `size` bytes of a regular file that is no link. Raises OSError."""

    def opener(name: str, flags: int) -> int:
        # Without O_NONBLOCK, opening a pipe would wait for its other end.
        return os.open(name, flags | os.O_NONBLOCK | os.O_NOFOLLOW)

    with open(path, "rb", opener=opener) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "no regular file")
        return file.read(size)


def _lies_in(path: str, folder: str) -> bool:
    """Return whether a path without links lies in a folder, which may be a link."""
    return path.startswith(os.path.realpath(folder).rstrip(os.sep) + os.sep)


class KeyedResource(Resource[R]):
    """The records of one noun, each with a name and a reference to its key.

    key_field: has the reference. key_param: in which a caller sends the key or the reference.
    """

    key_field: ClassVar[str] = "key_reference"
    key_param: ClassVar[str] = "api_key"

    async def _commit_with_key(
        self, caller: Caller, work: Callable[[AuthorityTransaction], T], reference: str | None, key: str | None
    ) -> T:
        """Commit `work`, and keep `key` if one is given and the reference is a stored one.

        Raises:
            InvalidRequest: hosts share the database, and only this one would have the key. SetupError: it was not kept.
        """
        if key is None or reference is None or not reference.startswith(STORED):
            return await self.audit.commit_authority(caller, work)
        if self.store.db.is_shared:
            raise InvalidRequest(
                "Several hosts share the database, and a secret that is typed in or made here would stay on this one. "
                f"Give {self.key_param} as env:NAME, file:/PATH or cred:NAME, and have the secret on each host.",
                param=self.key_param,
            )
        key_id = reference.removeprefix(STORED)

        def keeping(tx: AuthorityTransaction) -> T:
            result = work(tx)
            try:
                self.store.keyfile.put(key_id, key)
            except OSError as error:
                raise SetupError(f"The secret cannot be kept ({error.strerror}): nothing was changed.") from error
            return result

        def undo(tx: Transaction) -> None:
            references = [getattr(one, self.key_field) for one in self._repository.all(tx)]
            if reference not in references:  # else only the answer of the commit was lost
                self.store.keyfile.drop(key_id)

        try:
            return await self.audit.commit_authority(caller, keeping)
        except BaseException:
            # Also after a cancellation. A disk that refuses writes keeps the key.
            with anyio.move_on_after(_DROP_SECONDS, shield=True), suppress(GatewayError, OSError):
                await self.store.db.write(undo)
            raise

    def _drop_key(self, tx: Transaction | AuthorityTransaction, record: Any) -> None:
        """Remove the key of a record, if it is a stored one, once `tx` is committed."""
        reference: str = getattr(record, self.key_field) or ""
        if not reference.startswith(STORED):
            return

        def drop() -> None:
            try:
                self.store.keyfile.drop(reference.removeprefix(STORED))
            except OSError as error:
                self.log.error(f"{self.resource_type}_key_left", error=error, **{self.resource_type: record.name})

        tx.after_commit(drop)
