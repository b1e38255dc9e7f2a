"""`verify`: an archive against its own manifest and, on request, its byte code against its own sources."""

import argparse
import hashlib
import json
import sys
from zipfile import ZipFile

from gateway import bundle
from gateway.cli.bytecode import compile_pyc
from gateway.cli.command import FOUND, OK, Console, argument, command, shown
from gateway.errors import SetupError
from gateway.services.archive_check import BAD_ARCHIVE, MANIFEST, check_members


@command(
    "verify",
    "Check an archive against its manifest.",
    "new.pyz --bytecode",
    argument("file", nargs="?", metavar="FILE", help="archive to check; the running one if left out"),
    argument("--bytecode", action="store_true", help="also compile the sources and compare"),
    has_json=True,
)
def _verify(options: argparse.Namespace, console: Console) -> int:
    path = options.file or bundle.archive_path()
    if path is None:
        raise SetupError("this is a checkout: name the archive to verify")
    # Nothing of the archive is run, imported or unmarshalled.
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            with ZipFile(file) as archive:
                hashes, problems = check_members(archive)
                is_whole = not problems
                if options.bytecode and is_whole:
                    problems = check_bytecode(archive)
    except BAD_ARCHIVE as error:
        raise SetupError(f"{path} is no whole gateway archive ({type(error).__name__}): get a fresh copy") from error
    if options.json:
        console.print_json({"file": path, "sha256": digest, "members": len(hashes), "problems": problems})
        return FOUND if problems else OK
    for problem in problems:
        console.print(shown(problem, 200))
    state = "matches its manifest" if is_whole else "DAMAGED"
    if options.bytecode and is_whole:
        of_python = f"the byte code of {sys.implementation.cache_tag}"
        state += f"; {of_python} is not confirmed" if problems else f", and {of_python} its sources"
    console.print(f"{digest}  {path}: {state}, {len(hashes)} members")
    return FOUND if problems else OK


def check_bytecode(archive: ZipFile) -> list[str]:
    """Compile the sources in the archive and compare them with its byte code for the running Python."""
    tag = sys.implementation.cache_tag
    tags = json.loads(archive.read(MANIFEST))["bytecode"]
    if tag not in tags:
        have = ", ".join(tags) or "none"
        return [f"there is no byte code of {tag} in it to compare (it has: {have}); run this with another Python"]
    names = set(archive.namelist())
    sources = {name for name in names if name.endswith(".py") and not name.startswith("_")}
    compiled = {name for name in names if name.startswith(f"_{tag}/") and name.endswith(".pyc")}
    problems = []
    for source in sorted(sources):
        member = f"_{tag}/{source}c"
        if member not in compiled:
            problems.append(f"{source} has no byte code")
        elif archive.read(member) != _compiled(archive, source):
            problems.append(f"{source} has other byte code")
    extra = compiled - {f"_{tag}/{source}c" for source in sources}
    problems += [f"{name} has no source" for name in sorted(extra)]
    # The byte code of anyio reads two of its sources, which therefore lie beside it as well.
    copies = [name for name in names if name.startswith(f"_{tag}/") and name.endswith(".py")]
    changed = [name for name in copies if archive.read(name) != archive.read(name.removeprefix(f"_{tag}/"))]
    return problems + [f"{name} is another source" for name in sorted(changed)]


def _compiled(archive: ZipFile, source: str) -> bytes | None:
    try:
        return compile_pyc(archive.read(source), source)
    except (SyntaxError, ValueError, RecursionError):
        return None


COMMANDS = (_verify,)
