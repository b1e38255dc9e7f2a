"""Keys in a file beside the database for its owner alone, such as those of providers that were entered. No SQL.

The keys are never in the database, so never in a backup. A key is written, under an id of its own, before the commit of
the record that names it, and removed after the commit of the record that no longer does. So whatever fails, no record
lacks its key. Only the writer of the database writes here, under the database's lock.
"""

import json
import os

from gateway.store.filelock import sync


class KeyFile:
    """The file, or this process's memory when `path` is None. Every method raises OSError if it cannot do its work.

    What `put` wrote is on the disk when it returns.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self._memory: dict[str, str] = {}

    @property
    def folder(self) -> str | None:
        """The folder the file lies in, None for memory."""
        return None if self.path is None else os.path.dirname(os.path.abspath(self.path))

    def get(self, key_id: str) -> str | None:
        return self._all().get(key_id)

    def put(self, key_id: str, key: str) -> None:
        self._write(self._all() | {key_id: key})

    def drop(self, key_id: str) -> None:
        keys = self._all()
        if keys.pop(key_id, None) is not None:
            self._write(keys)

    def _all(self) -> dict[str, str]:
        if self.path is None:
            return self._memory
        try:
            with open(self.path, "rb") as file:
                value = json.loads(file.read())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise OSError(0, "The file of keys is damaged", self.path) from error
        return {str(name): str(key) for name, key in value.items()} if isinstance(value, dict) else {}

    def _write(self, keys: dict[str, str]) -> None:
        if self.path is None:
            self._memory = keys
            return
        new = f"{self.path}.new"
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)  # a file that an earlier try left may be open to others
            file.write(json.dumps(keys).encode("ascii"))
            file.flush()
            os.fsync(descriptor)
        os.replace(new, self.path)
        sync(os.path.dirname(os.path.abspath(self.path)))
