"""Everything that travels with the program: data files, the archive's manifest and the native matcher.

In a checkout the data files lie beside the package and the matcher is an installed module. In an archive the standard
library's `zipimport` reads all members. A server calls `load_all` before it listens: it then no longer needs the file,
which may be replaced or deleted while the server runs.

A native library cannot be mapped from inside a zip. On Linux the gateway writes it to a sealed memfd, else to a private
file that it unlinks at once. If neither works, the matcher in pure Python finds the same, more slowly.
"""

import errno
import fcntl
import hashlib
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec

MODULE = "ahocorasick"
MANIFEST = "META/manifest.json"
_MFD_EXEC = 0x10  # Linux 6.3; older kernels answer EINVAL
_ALL_SEALS = 0x1 | 0x2 | 0x4 | 0x8


class BundleDamaged(Exception):
    """A file of the archive is not the one that its manifest names. There is no fallback."""


@dataclass(frozen=True, slots=True)
class NativeReport:
    """How the matcher was loaded. way: ``installed`` or one that `load_native` tries. tried: ways with results."""

    way: str
    member: str | None
    tried: tuple[tuple[str, str], ...]


def archive_path() -> str | None:
    """Return the path of the archive that the program was started from, or None in a checkout."""
    path: str | None = getattr(globals()["__loader__"], "archive", None)
    return path


ROOT = archive_path() or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@cache
def read(name: str) -> bytes:
    """Return a data file, named from the root such as ``rules.json``. It is read once and stays in memory.

    Raises:
        OSError: the file does not exist.
    """
    return _read(name)


def _read(name: str) -> bytes:
    data: bytes = globals()["__loader__"].get_data(os.path.join(ROOT, *name.split("/")))
    return data


def names(folder: str) -> tuple[str, ...]:
    """Return the sorted names of the data files under a folder such as ``gateway/dashboard``, relative to it."""
    about = manifest()
    if about is not None:
        return tuple(sorted(name.removeprefix(f"{folder}/") for name in about.members if name.startswith(f"{folder}/")))
    top = os.path.join(ROOT, *folder.split("/"))
    found = (os.path.join(path, name) for path, _, files in os.walk(top) for name in files)
    return tuple(sorted(os.path.relpath(path, top).replace(os.sep, "/") for path in found))


@cache
def build_id() -> str:
    """Return the commit that this copy was built from, such as ``1a2b3c4d5e6f+dirty``, or ``unknown``.

    In a checkout it is the last commit that git put there, with ``+checkout``: the files may differ from it.
    """
    git = os.path.join(ROOT, ".git")
    try:
        return read("gateway/build.txt").decode()
    except OSError:
        with suppress(OSError, IndexError):
            if os.path.isfile(git):  # a worktree names its folder of git
                git = os.path.join(ROOT, _read(".git").decode().removeprefix("gitdir: ").strip())
            with open(os.path.join(git, "logs", "HEAD"), "rb") as log:
                return f"{log.readlines()[-1].split()[1][:12].decode()}+checkout"
        return "unknown"


@cache
def archive_sha256() -> str | None:
    """Return the SHA-256 of the archive as it is at the first call, or None in a checkout."""
    path = archive_path()
    if path is None:
        return None
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load_all() -> None:
    """Import every module and read every data file, so that the archive may be replaced from now on.

    The shield reads its own data files. Targets are ASCII, so idna, which is large, is never asked for.
    """
    about = manifest()
    if about is None:
        return
    archive_sha256()
    for name in about.members:
        if name.endswith(".py") and not name.startswith(("_", "gateway/cli/", "idna/")):
            try:
                importlib.import_module(name.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
            except ImportError:
                continue  # a part of a library that is for another system
        elif name.startswith(("gateway/", "META/sbom")) and not name.startswith("gateway/shield/"):
            read(name)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive says about itself. bytecode: the Pythons it has byte code for. members: SHA-256 by name."""

    bytecode: tuple[str, ...]
    members: dict[str, str]


@cache
def manifest() -> Manifest | None:
    """Return the manifest of the running archive, or None in a checkout.

    Raises:
        OSError: it cannot be read.
        ValueError, LookupError, TypeError: it is not a manifest.
    """
    if archive_path() is None:
        return None
    value = json.loads(read(MANIFEST))
    return Manifest(tuple(value["bytecode"]), dict(value["sha256"]))


def load_native(wish: str | None) -> NativeReport:
    """Put the native matcher into `sys.modules` before anything imports it, or make sure that its import fails.

    wish: the one way to try, or None for ``memfd``, ``unlinked-file`` and ``python``, in this order.

    Raises:
        BundleDamaged: the archive's native file does not match the manifest.
    """
    if wish == "python":
        return _without_native(None, (("native", "not wanted"),))
    about = manifest()
    if about is None:
        return NativeReport("installed", None, (("installed", "outside an archive the installed package is used"),))
    member = f"_native/{_libc()}/{MODULE}{EXTENSION_SUFFIXES[0]}"
    if member not in about.members:
        return _without_native(None, (("native", f"none in this archive for {EXTENSION_SUFFIXES[0]}"),))
    try:
        data = _read(member)
    except OSError as error:
        raise BundleDamaged(f"{member}: {error}") from error
    if hashlib.sha256(data).hexdigest() != about.members[member]:
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


def _without_native(member: str | None, tried: tuple[tuple[str, str], ...]) -> NativeReport:
    sys.modules[MODULE] = None  # type: ignore[assignment]  # an import of it now fails, as the fallback expects
    return NativeReport("python", member, (*tried, ("python", "ok")))


def _libc() -> str:
    if sys.platform != "linux":
        return sys.platform
    try:
        return "gnu" if os.confstr("CS_GNU_LIBC_VERSION") else "musl"
    except (ValueError, OSError):
        return "musl"


def _map(path: str) -> None:
    spec = ModuleSpec(MODULE, ExtensionFileLoader(MODULE, path), origin=path)
    module = module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(module)
    sys.modules[MODULE] = module


def _by_memfd(data: bytes) -> None:
    if not hasattr(os, "memfd_create"):
        raise OSError("this system has no memfd")
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        descriptor = os.memfd_create(MODULE, flags | _MFD_EXEC)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        descriptor = os.memfd_create(MODULE, flags)
    with open(descriptor, "wb") as file:  # the mapping outlives it
        file.write(data)
        file.flush()
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _ALL_SEALS)
        _map(f"/proc/self/fd/{descriptor}")


def _by_file(data: bytes) -> None:
    reasons = []
    for base in _scratch_folders():
        try:
            with tempfile.TemporaryDirectory(dir=base, ignore_cleanup_errors=True) as folder:
                path = os.path.join(folder, MODULE + EXTENSION_SUFFIXES[0])
                with open(path, "xb", opener=partial(os.open, mode=0o500)) as file:
                    file.write(data)
                _map(path)
                return
        except (OSError, ImportError) as error:
            reasons.append(f"{base}: {error}")
    raise OSError("; ".join(reasons) or "no folder that allows mapping a file")


def _scratch_folders() -> Iterator[str]:
    for folder in ("/run", "/dev/shm", "/tmp", "/var/tmp"):  # noqa: S108
        try:
            if not os.statvfs(folder).f_flag & os.ST_NOEXEC:
                yield folder
        except OSError:
            continue
