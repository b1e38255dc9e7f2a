"""`verify`: an archive against its own manifest and, on request, its byte code against its own sources."""

import argparse
import hashlib
import io
import json
import sys
import zlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gateway import bundle
from gateway.cli.command import FOUND, OK, Command, Console, shown
from gateway.cli.packs import differences, pack_of
from gateway.errors import SetupError
from gateway.services.archive_check import MANIFEST, MOST_BYTES, check_members

if TYPE_CHECKING:
    from zipfile import ZipFile


@dataclass(frozen=True, slots=True)
class Verified:
    """What the check of a file found. sha256: of the whole file. members: how many the manifest names.

    is_whole: whether they are all there as it says. Problems of a whole file are of its byte code.
    """

    sha256: str
    members: int
    is_whole: bool
    problems: tuple[str, ...]


def verify(options: argparse.Namespace, console: Console) -> int:
    """Check every member of an archive against its manifest, and that nothing was added."""
    path = options.file or bundle.archive_path()
    if path is None:
        raise SetupError("this is a checkout: name the archive to verify")
    found = check(path, bytecode=options.bytecode)
    if options.json:
        console.print_json(
            {"file": path, "sha256": found.sha256, "members": found.members, "problems": list(found.problems)}
        )
        return FOUND if found.problems else OK
    for problem in found.problems:
        console.print(shown(problem, 200))
    state = "matches its manifest" if found.is_whole else "DAMAGED"
    if options.bytecode and found.is_whole:
        of_python = f"the byte code of {sys.implementation.cache_tag}"
        state += f"; {of_python} is not confirmed" if found.problems else f", and {of_python} its sources"
    console.print(f"{found.sha256}  {path}: {state}, {found.members} members")
    return FOUND if found.problems else OK


def check(path: str, *, bytecode: bool) -> Verified:
    """Check the archive at `path`. Nothing of it is run, imported or unmarshalled.

    Raises:
        SetupError: it is no whole archive of the gateway.
        OSError: it cannot be read.
    """
    from zipfile import BadZipFile, ZipFile  # slow to import, and every start would pay for it

    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            with ZipFile(file) as archive:
                hashes, problems = check_members(
                    archive.namelist(),
                    sum(info.file_size for info in archive.infolist()),
                    read=archive.read,
                    sha256=partial(_sha256, archive),
                )
                is_whole = not problems
                if bytecode and is_whole:
                    problems = check_bytecode(archive)
    except (BadZipFile, LookupError, ValueError, TypeError, EOFError, NotImplementedError, RuntimeError) as error:
        raise SetupError(f"{path} is no whole gateway archive ({type(error).__name__}): get a fresh copy") from error
    except zlib.error as error:
        raise SetupError(f"{path} is damaged ({error}): get a fresh copy") from error
    return Verified(digest, len(hashes), is_whole, tuple(problems))


def _sha256(archive: "ZipFile", name: str) -> str:
    with archive.open(name) as member:
        return hashlib.file_digest(member, "sha256").hexdigest()  # type: ignore[arg-type]


def check_bytecode(archive: "ZipFile") -> list[str]:
    """Compile sources and regexes in the archive and compare with what is kept compiled for the running Python."""
    from gateway.shield.layout import Layout
    from gateway.shield.regexes import differences as differences_of_regexes
    from gateway.shield.regexes import whole

    tag = sys.implementation.cache_tag
    pack, packs = pack_of(tag), json.loads(archive.read(MANIFEST))["packs"]
    if pack not in packs:
        have = ", ".join(name.removeprefix("_pyc/").removesuffix(".pack") for name in packs) or "none"
        return [f"there is no byte code of {tag} in it to compare (it has: {have}); run this with another Python"]
    sources = read_sources(archive)
    problems = [f"{pack}: {problem}" for problem in differences(tag, sources, archive.read)]
    regexes = f"_regexes/{tag}.pack"
    plans = Layout(archive.read("rules.plans"))
    rules = [plans.rule(number)[1].regexes() for number in range(plans.count)]
    kept = whole(archive.read(regexes), archive.read)
    return problems + [f"{regexes}: {told}" for told in differences_of_regexes(kept, plans.digest, rules)]


def read_sources(archive: "ZipFile") -> dict[str, bytes]:
    """Return every source by its name.

    Raises:
        ValueError: they are too much to be those of a gateway.
    """
    from zipfile import ZipFile

    sources = dict[str, bytes]()
    for member in ("data.zip", "sources.zip"):
        with ZipFile(io.BytesIO(archive.read(member))) as within:
            if sum(info.file_size for info in within.infolist()) > MOST_BYTES:
                raise ValueError("too much")
            sources |= {name: within.read(name) for name in within.namelist() if name.endswith(".py")}
    return sources | {name: archive.read(name) for name in archive.namelist() if name.endswith(".py")}


def declare(parser: argparse.ArgumentParser) -> None:
    """Declare the archive to verify."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="archive to check; the running one if left out")
    parser.add_argument("--bytecode", action="store_true", help="also compile the sources and compare")


COMMANDS = (
    Command(
        "verify",
        "Check an archive against its manifest.",
        "old.pyz verify new.pyz --bytecode",
        declare,
        verify,
        has_json=True,
    ),
)
