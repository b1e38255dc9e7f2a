"""What travels with the program: data files, the archive's manifest, the C automaton. The only door to all three.

In a checkout the data files lie beside the package and the automaton is an installed module. In the archive the same
loader reads both, and the native file is checked against the manifest before a byte of it is mapped. On POSIX nothing
is left on disk: a sealed memfd, else a private file that is unlinked once mapped, else pure Python.
"""

import _imp
import errno
import hashlib
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec

MODULE = "ahocorasick"
WAYS = ("memfd", "unlinked-file", "python")
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_MFD_EXEC = 0x10  # Linux 6.3; older kernels answer EINVAL
_F_ADD_SEALS = 1033
_ALL_SEALS = 0x1 | 0x2 | 0x4 | 0x8
_FOLDER_TRIES = 100
# The native files of one platform are much alike: of all but one the archive has the difference, by pieces, each
# packed with what stands there in that one. Both together are no more than zlib looks back.
DIFFERENCE = ".difference"
_PIECE_BYTES, _SLACK_BYTES = 24 * 1024, 4 * 1024


class BundleDamaged(Exception):
    """A file of the archive is not the one its manifest names. Never fall back from this."""


@dataclass(frozen=True, slots=True)
class NativeReport:
    """How the matcher was loaded. way: one of WAYS or ``installed``. tried: (way, "ok" or why not)."""

    way: str
    member: str | None
    tried: tuple[tuple[str, str], ...]


def read(name: str) -> bytes:
    """Return a data file, named from the root such as ``rules.json``, in a checkout or in the archive.

    Raises:
        OSError: there is no such file.
    """
    loader = globals()["__loader__"]
    data: bytes = loader.get_data(os.path.join(_ROOT, *name.split("/")))
    return data


def names(folder: str) -> tuple[str, ...]:
    """Return the names of the data files under `folder`, such as ``gateway/dashboard``, from there and sorted."""
    list_data: Callable[[], list[str]] | None = getattr(globals()["__loader__"], "data_names", None)
    if list_data is not None:
        found = [name.removeprefix(f"{folder}/") for name in list_data() if name.startswith(f"{folder}/")]
    else:
        top = os.path.join(_ROOT, *folder.split("/"))
        found = [
            os.path.relpath(os.path.join(place, name), top).replace(os.sep, "/")
            for place, _, files in os.walk(top)
            for name in files
        ]
    return tuple(sorted(found))


def archive_path() -> str | None:
    """Return the path of the archive the program was started from, or None in a checkout. It may be gone by now."""
    path: str | None = getattr(globals()["__loader__"], "archive", None)
    return path


def archive_sha256() -> str | None:
    """Return the SHA-256 of the archive that runs, or None in a checkout.

    It is of the file that was started, even when another one has taken its name since. Read once, kept by the loader.
    """
    read_sha256: Callable[[], str] | None = getattr(globals()["__loader__"], "sha256", None)
    return None if read_sha256 is None else read_sha256()


def forget_loaded() -> None:
    """Let go of the packed byte code of all modules that have been loaded. In a checkout there is none."""
    forget: Callable[[], None] | None = getattr(globals()["__loader__"], "forget", None)
    if forget is not None:
        forget()


def let_go_unpacked() -> None:
    """Let go of byte code that lies unpacked for modules asked for next. In a checkout there is none."""
    let_go: Callable[[], None] | None = getattr(globals()["__loader__"], "let_go", None)
    if let_go is not None:
        let_go()


def manifest() -> dict[str, object] | None:
    """Return the archive's own manifest, or None in a checkout.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not a manifest.
    """
    if archive_path() is None:
        return None
    value: dict[str, object] = json.loads(read("META/manifest.json"))
    form = {"version": str, "packs": list, "native": dict, "sha256": dict}
    if not all(isinstance(value.get(name), kind) for name, kind in form.items()):
        raise ValueError("it is not a manifest")
    return value


def load_native(wish: str | None) -> NativeReport:
    """Put the C automaton into `sys.modules`, before anything imports it, or see to it that it is not there.

    wish: one of WAYS to try that one alone, or None for all in order.

    Raises:
        BundleDamaged: the archive's native file does not match the manifest.
    """
    if wish == "python":
        return _without_native(None, (("native", "not wanted"),))
    try:
        about = manifest()
    except (OSError, ValueError) as error:
        raise BundleDamaged("its manifest cannot be read") from error
    if about is None:
        return NativeReport("installed", None, (("installed", "a checkout uses the installed package"),))
    member = f"_native/{_libc()}/{MODULE}{EXTENSION_SUFFIXES[0]}"
    natives = about["native"]
    assert isinstance(natives, dict)
    if member not in natives:
        return _without_native(None, (("native", f"none in this archive for {EXTENSION_SUFFIXES[0]}"),))
    try:
        data, sha256 = _read_native(member, natives[member]["like"]), natives[member]["sha256"]
    except (OSError, LookupError, TypeError, zlib.error) as error:
        raise BundleDamaged(f"{member}: {error}") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise BundleDamaged(f"{member} does not match the manifest")
    tried: list[tuple[str, str]] = []
    ways: tuple[tuple[str, Callable[[bytes], None]], ...] = (("memfd", _by_memfd), ("unlinked-file", _by_file))
    for way, load in ways:
        if wish not in (None, way):
            continue
        try:
            load(data)
        except (OSError, ImportError) as error:
            tried.append((way, f"{type(error).__name__}: {error}"))
        else:
            return NativeReport(way, member, (*tried, (way, "ok")))
    return _without_native(member, tuple(tried))


def difference(like: bytes, data: bytes) -> bytes:
    """Return what `data` has that another file, much like it, has not, for `restored`."""
    pieces = []
    for place in range(0, len(data), _PIECE_BYTES):
        packer = zlib.compressobj(9, wbits=-15, zdict=_around(like, place))
        pieces += [packer.compress(data[place : place + _PIECE_BYTES]), packer.flush()]
    return b"".join(pieces)


def restored(like: bytes, packed: bytes) -> bytes:
    """Return the file of which `difference` told what another one has not.

    Raises:
        zlib.error: it is not of that file.
    """
    data = bytearray()
    while packed:
        unpacker = zlib.decompressobj(-15, _around(like, len(data)))
        piece = unpacker.decompress(packed)
        if not piece or not unpacker.eof:
            raise zlib.error("cut off")
        data += piece
        packed = unpacker.unused_data
    return bytes(data)


def _around(like: bytes, place: int) -> bytes:
    """Return what stands in a file where a piece of another one is packed, and a little before and after it."""
    return like[max(0, place - _SLACK_BYTES) : place + _PIECE_BYTES + _SLACK_BYTES]


def _read_native(member: str, like: str | None) -> bytes:
    return read(member) if like is None else restored(read(like), read(f"{member}{DIFFERENCE}"))


def _without_native(member: str | None, tried: tuple[tuple[str, str], ...]) -> NativeReport:
    sys.modules[MODULE] = None  # type: ignore[assignment]  # so that an import of it fails, as the fallback expects
    return NativeReport("python", member, (*tried, ("python", "ok")))


def _libc() -> str:
    if sys.platform != "linux":
        return sys.platform
    try:
        return "gnu" if os.confstr("CS_GNU_LIBC_VERSION") else "musl"
    except (ValueError, OSError):
        return "musl"


def _map(path: str) -> None:
    loader = ExtensionFileLoader(MODULE, path)
    spec = ModuleSpec(MODULE, loader, origin=path)
    module = _imp.create_dynamic(spec)
    _imp.exec_dynamic(module)
    module.__spec__, module.__loader__ = spec, loader
    sys.modules[MODULE] = module


def _by_memfd(data: bytes) -> None:
    if sys.platform != "linux":
        raise OSError("this system has no memfd")
    import fcntl  # POSIX only

    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        descriptor = os.memfd_create(MODULE, flags | _MFD_EXEC)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        descriptor = os.memfd_create(MODULE, flags)
    try:
        _write_all(descriptor, data)
        fcntl.fcntl(descriptor, _F_ADD_SEALS, _ALL_SEALS)
        _map(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)  # the mapping outlives it


def _by_file(data: bytes) -> None:
    why = []
    for base in _scratch_folders():
        try:
            folder = _private_folder(base)
        except OSError as error:
            why.append(f"{base}: {error.strerror}")
            continue
        path = os.path.join(folder, MODULE + EXTENSION_SUFFIXES[0])
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o500)
            try:
                _write_all(descriptor, data)
            finally:
                os.close(descriptor)
            _map(path)
            return
        except (OSError, ImportError) as error:
            why.append(f"{base}: {error}")
        finally:
            for undo, what in ((os.unlink, path), (os.rmdir, folder)):
                try:
                    undo(what)
                except OSError:
                    continue  # not made, or a system that keeps a mapped file
    raise OSError("; ".join(why) or "no folder that allows mapping a file")


def _private_folder(base: str) -> str:
    """Make a folder for this process alone. Its name may be guessed, but mkdir takes no folder that exists."""
    for number in range(_FOLDER_TRIES):
        folder = os.path.join(base, f".gateway-{os.getpid()}-{number}")
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            continue
        return folder
    raise FileExistsError(errno.EEXIST, "every name for a private folder is taken", base)


def _scratch_folders() -> Iterator[str]:
    if os.name != "posix":
        import tempfile  # slow to import, and POSIX does without

        yield tempfile.gettempdir()
        return
    for folder in ("/run", "/dev/shm", "/tmp", "/var/tmp"):  # noqa: S108
        try:
            if not os.statvfs(folder).f_flag & os.ST_NOEXEC:
                yield folder
        except OSError:
            continue


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
