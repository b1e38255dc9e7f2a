"""From the reference of a provider's key to the key: environment, a file, systemd's credentials, or the file beside
the database. Never tells a key in a message, a log or a record."""

import os
import re
import stat

from gateway import settings
from gateway.domain.providers import MAX_KEY_BYTES
from gateway.errors import GatewayError
from gateway.store.keyfile import KeyFile

_KEY = re.compile(r"[!-~]+")


class KeyMissing(GatewayError):
    """The key of a provider is not where its record says. message: why, for the operator, without the key."""

    code = "upstream_unavailable"


class ProviderKeys:
    """The keys of this host's providers."""

    def __init__(self, keyfile: KeyFile) -> None:
        self._keyfile = keyfile

    def read(self, reference: str | None) -> str | None:
        """Return the key that `reference` leads to, None if there is no reference. Reads at most one small file.

        Raises:
            KeyMissing: there is no key, or not one that can be sent.
        """
        if reference is None:
            return None
        kind, _, name = reference.partition(":")
        match kind:
            case "env":
                key = settings.variable_text(name)
                reason = f"the environment variable {name} is not set, or is a secret of the gateway itself"
            case "file":
                key = self._read_file(name)
                reason = f"the file {name} is empty"
            case "cred":
                folder = settings.credentials_folder()
                key = None if folder is None else self._read_file(os.path.join(folder, name))
                reason = f"systemd gives no credential {name}: LoadCredential= is missing"
            case _:
                key = self._read_stored(name)
                reason = "the key that was typed in is not in the file beside the database: enter it again"
        if not key:
            raise KeyMissing(f"There is no API key: {reason}.")
        if not _KEY.fullmatch(key):
            raise KeyMissing("The API key is more than one line, or holds blanks or signs that cannot be sent.")
        return key

    def is_there(self, reference: str | None) -> bool:
        """Tell whether `read` would return a key, or none is needed."""
        try:
            self.read(reference)
        except KeyMissing:
            return False
        return True

    def _read_stored(self, key_id: str) -> str | None:
        try:
            return self._keyfile.get(key_id)
        except OSError as error:
            raise KeyMissing(f"The file of API keys cannot be read ({error.strerror}).") from error

    def _read_file(self, path: str) -> str:
        """Return what stands in a small regular file.

        Files of the data folder are no keys of providers: whoever may name a file here may send it anywhere.
        """
        folder = self._keyfile.folder
        if folder is not None and os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep):
            raise KeyMissing("A file of the data folder is no API key.")
        try:
            # Not to wait for the other end of a pipe.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise KeyMissing(f"The file of the API key cannot be read ({error.strerror}).") from error
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise KeyMissing("What should hold the API key is no file.")
            raw = file.read(MAX_KEY_BYTES + 1)
        if len(raw) > MAX_KEY_BYTES:
            raise KeyMissing("The file of the API key is too long for one.")
        return raw.decode("utf-8", "replace").strip()
