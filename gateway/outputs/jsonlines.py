"""Events as lines in a file that only its owner may read. A full file is rotated once."""

import os

import anyio.to_thread

from gateway.domain.event_formats import file_line
from gateway.domain.event_outputs import OutEvent, OutputFormat
from gateway.outputs.delivery import Delivery, DeliveryFailed

MAX_FILE_BYTES = 64 * 1024 * 1024


class JsonLines(Delivery):
    """One file, opened for each line, so that you can move it at any time.

    A file that would pass `MAX_FILE_BYTES` is renamed to ``NAME.1`` and replaces the previous one.
    """

    def __init__(self, folder: str, name: str, form: OutputFormat) -> None:
        self._folder = folder
        self._form = form
        self._path = os.path.join(folder, name)

    async def deliver(self, event: OutEvent) -> None:
        try:
            await anyio.to_thread.run_sync(self._append, file_line(event, self._form))
        except OSError as error:
            raise DeliveryFailed(f"The file cannot be written ({error.strerror}).") from error

    def _append(self, line: bytes) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags, 0o600)
        try:
            if os.fstat(descriptor).st_size + len(line) > MAX_FILE_BYTES:
                os.replace(self._path, self._path + ".1")
                os.close(descriptor)
                descriptor = os.open(self._path, flags, 0o600)
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
