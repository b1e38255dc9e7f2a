#!/usr/bin/env python3
"""Build gateway.pyz, byte-identical for the same inputs: for this Python and platform, or for all with --release.

The build needs the standard library and pip. It fetches the wheels named in deploy/requirements.txt once into
build/wheels and checks them against their pinned hashes every time. Without --release the archive holds the native
matcher of this platform and the byte code of this Python; elsewhere it runs more slowly.

Layout of the archive:
    __main__.py           deploy/launcher.py: checks every member, then imports from the archive alone
    gateway/, anyio/ ...  the sources and the data files, as they are; gateway/docs/ has the documents
    _TAG/                 the same modules as byte code of one Python, such as _cpython-311/gateway/log.pyc
    _native/LIBC/*.so     the native matcher, as it is in the wheels, by C library and extension suffix
    rules.json            the rules of the shield
    rules.plans           how the shield looks for them, worked out ahead
    META/                 manifest with the SHA-256 of each member, CycloneDX SBOM, licences
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import MAGIC_NUMBER
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - an old Python gets one clear line
    sys.exit("build_zipapp.py needs Python 3.11 or newer")

from deploy.sbom import Wheel, sbom

HERE = Path(__file__).resolve().parent
DEPLOY = HERE / "deploy"
LOCK = DEPLOY / "requirements.txt"
NOTICE = HERE / "NOTICE"
WHEELS = HERE / "build" / "wheels"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment a zip file can name
# Python looks for a zip file at its end. It reads a cut-off file as a program, whose second line names the encoding.
FIRST_LINES = b"#!/usr/bin/env python3\n# coding: this-archive-is-cut-off--get-a-fresh-copy\n"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = (
    ("manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    ("manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    ("musllinux_1_2_x86_64",),
    ("musllinux_1_2_aarch64",),
    ("macosx_10_9_universal2", "macosx_10_13_universal2", "macosx_11_0_arm64"),
    ("win_amd64",),
)
LIBCS = (("musllinux", "musl"), ("manylinux", "gnu"), ("macosx", "darwin"), ("win", "win32"))
# Files and folders of the wheels that the gateway never imports.
UNUSED = (
    *("anyio/pytest_plugin.py", "anyio/_backends/_trio.py", "anyio/to_process.py", "idna/__main__.py", "idna/cli.py"),
    *("mistune/__main__.py", "mistune/directives/", "mistune/renderers/markdown.py", "mistune/renderers/rst.py"),
)
DATA = (".sql", ".json", ".txt", ".html", ".css", ".js", ".svg")
# All that a build reads.
SOURCES = ("gateway", "deploy", "rules.json", "build_zipapp.py", "pyproject.toml", "LICENSE", "NOTICE")
BUILD_FILE = "gateway/build.txt"
READ_BY_ANYIO = ("anyio/__init__.py", "anyio/abc/__init__.py")  # anyio reads these sources to find its own names
MOST_PROCESSES = 8  # each process that plans rules takes up to 250 MB


@dataclass(slots=True)
class Contents:
    """What goes into the archive. members: bytes by name. wheels: by project and version."""

    members: dict[str, bytes] = field(default_factory=dict)
    wheels: dict[tuple[str, str], list[Wheel]] = field(default_factory=dict)


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` as hex."""
    return hashlib.sha256(data).hexdigest()


def fail(reason: str) -> SystemExit:
    """Return the error that ends the build with one line."""
    return SystemExit(f"build_zipapp.py: {reason}")


def pinned_hashes() -> set[str]:
    """Return every SHA-256 that the lock file allows."""
    return set(re.findall(r"--hash=sha256:([0-9a-f]{64})", LOCK.read_text("utf-8")))


def pinned_projects() -> dict[str, str]:
    """Return the version of every project in the lock file."""
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", LOCK.read_text("utf-8"), re.MULTILINE))


def have_wheels(wheels: Path, python: str, is_fit: Callable[[str], bool]) -> bool:
    """Return whether every pinned project has a wheel for a Python such as 3.11 and its platform, without an index.

    is_fit: whether the name of a binary wheel is for the platform.
    """
    tag = f"-cp{python.replace('.', '')}-"
    names = [path.name for path in wheels.glob("*.whl") if "-none-any" in path.name or is_fit(path.name)]
    starts = [f"{project.replace('-', '_')}-{version}-" for project, version in pinned_projects().items()]
    fit = [name for name in names if "-none-any" in name or tag in name]
    return all(any(name.startswith(start) for name in fit) for start in starts)


def is_local(wheel: str) -> bool:
    """Return whether a binary wheel is for the platform that runs the build."""
    if sys.platform != "linux":
        return ("macosx" if sys.platform == "darwin" else "win") in wheel
    try:
        libc = "manylinux" if os.confstr("CS_GNU_LIBC_VERSION") else "musllinux"
    except (ValueError, OSError):  # musl does not know glibc's name
        libc = "musllinux"
    return libc in wheel and os.uname().machine in wheel


def fetch(wheels: Path, *, release: bool) -> None:
    """Download the wheels that are missing. pip checks each file against the lock."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--no-deps"]
    pip += ["--only-binary", ":all:", "--dest", str(wheels), "--requirement", str(LOCK)]
    wheels.mkdir(parents=True, exist_ok=True)
    if not release:
        if not have_wheels(wheels, f"{sys.version_info[0]}.{sys.version_info[1]}", is_local):
            run_all([pip])
        return
    for python in PYTHONS:
        for platforms in PLATFORMS:
            if not have_wheels(wheels, python, partial(is_for, platforms)):
                tags = [part for platform in platforms for part in ("--platform", platform)]
                run_all([[*pip, "--implementation", "cp", "--python-version", python, *tags]])


def is_for(platforms: tuple[str, ...], wheel: str) -> bool:
    """Return whether a binary wheel is for one of these platforms."""
    return any(platform in wheel for platform in platforms)


def run_all(commands: list[list[str]]) -> list[bytes]:
    """Run programs at the same time and return what each wrote. When one fails or the build is interrupted, all end.

    Raises:
        SystemExit: a program failed; names its last line.
    """
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    with contextlib.ExitStack() as running:
        children = []
        for command in commands:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            child = subprocess.Popen(command, cwd=HERE, env=environment, **pipes)  # type: ignore[call-overload]  # noqa: S603
            children.append(running.enter_context(child))
            running.callback(child.kill)  # comes before the wait for its end
        outputs = []
        for command, child in zip(commands, children, strict=True):
            written, errors = child.communicate()
            if child.returncode:
                last = (errors.decode(errors="replace").strip() or "it wrote nothing").splitlines()[-1]
                raise fail(f"{' '.join(command[:4])} failed: {last}")
            outputs.append(written)
    return outputs


def collect_wheels(contents: Contents, wheels: Path) -> None:
    """Take sources, native files and licences out of every wheel whose hash is pinned.

    Raises:
        SystemExit: a pinned wheel is missing, or two wheels hold the same native file.
    """
    allowed = pinned_hashes()
    for path in sorted(wheels.glob("*.whl")):
        raw = path.read_bytes()
        if sha256(raw) not in allowed:
            continue  # a wheel of another version, from an earlier build
        project, version = path.name.split("-")[:2]
        with zipfile.ZipFile(io.BytesIO(raw)) as wheel:
            about = wheel.read(f"{project}-{version}.dist-info/METADATA").decode()
            python = re.search(r"^Requires-Python: *(\S.*)$", about, re.MULTILINE)
            found = Wheel(path.name, sha256(raw), python[1] if python else "any")
            contents.wheels.setdefault((project.replace("_", "-"), version), []).append(found)
            for name in wheel.namelist():
                add_wheel_member(contents, path.name, project, name, wheel.read(name))
    missing = set(pinned_projects()) - {project for project, _ in contents.wheels}
    if missing:
        raise fail(f"no pinned wheel for {', '.join(sorted(missing))}: remove {wheels} and try again")


def add_wheel_member(contents: Contents, wheel: str, project: str, name: str, data: bytes) -> None:
    """Add one member of a wheel under its name in the archive, or leave it out."""
    if name.endswith((".so", ".pyd")):
        libc = next(libc for mark, libc in LIBCS if mark in wheel)
        member = f"_native/{libc}/{name}"
        if member in contents.members:
            raise fail(f"two wheels hold {member}")
        contents.members[member] = data
    elif ".dist-info/licenses/" in name and not name.endswith("/"):
        contents.members[f"META/licenses/{project}/{name.rpartition('/')[2]}"] = data
    elif name.endswith(".py") and not name.startswith(UNUSED):
        contents.members[name] = data


def collect_gateway(contents: Contents) -> str:
    """Take the gateway's own files and the plans of its rules, and return its version."""
    for path in sorted((HERE / "gateway").rglob("*")):
        if path.is_file() and path.suffix in (".py", *DATA):
            contents.members[path.relative_to(HERE).as_posix()] = path.read_bytes()
    for path in sorted((HERE / "docs").rglob("*.md")):
        contents.members[f"gateway/{path.relative_to(HERE).as_posix()}"] = path.read_bytes()
    contents.members["rules.json"] = (HERE / "rules.json").read_bytes()
    contents.members["rules.plans"] = plan_rules()
    contents.members["META/licenses/gateway/LICENSE"] = (HERE / "LICENSE").read_bytes()
    contents.members["META/licenses/gateway/NOTICE"] = NOTICE.read_bytes()
    contents.members["typing_extensions.py"] = (DEPLOY / "typing_extensions.py").read_bytes()
    found = re.search(r'^__version__ = "([^"]+)"', (HERE / "gateway" / "__init__.py").read_text("utf-8"), re.MULTILINE)
    assert found, "gateway/__init__.py names the version"
    return found[1]


def build_id() -> str:
    """Return the commit that is built, with ``+dirty`` if its sources were changed since; ``unknown`` without git."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*words: str) -> str:
        command = ["git", "--no-optional-locks", "-C", str(HERE), *words]
        done = subprocess.run(command, env=environment, capture_output=True, check=True)  # noqa: S603
        return os.fsdecode(done.stdout).strip()

    try:
        if git("rev-parse", "--show-toplevel") != str(HERE):
            return "unknown"  # a copy of the sources inside another repository
        return git("rev-parse", "--short=12", "HEAD") + "+dirty" * bool(git("status", "--porcelain", "--", *SOURCES))
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def plan_rules() -> bytes:
    """Plan the rules, which takes seconds, unless neither they nor the shield changed. Also written for a checkout."""
    sources = [HERE / "rules.json", *sorted((HERE / "gateway" / "shield").glob("*.py"))]
    sources.append(HERE / "gateway" / "shield" / "grams.json")
    kept = HERE / "build" / f"plans-{sha256(b''.join(path.read_bytes() for path in sources))[:32]}.plans"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        replace_file(kept, make_plans())
    plans = kept.read_bytes()
    beside = HERE / "rules.plans"
    if not beside.exists() or beside.read_bytes() != plans:
        replace_file(beside, plans)
    return plans


def make_plans() -> bytes:
    """Plan a share of the rules on each CPU, then join the shares."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    shares = min(cpus, MOST_PROCESSES)
    program = [sys.executable, "-S", "-s", "-B", str(DEPLOY / "plan.py")]
    with tempfile.TemporaryDirectory() as folder:
        names = [str(Path(folder, f"share-{share}")) for share in range(shares)]
        written = run_all([[*program, str(share), str(shares)] for share in range(shares)])
        for name, plans in zip(names, written, strict=True):
            Path(name).write_bytes(plans)
        return run_all([[*program, *names]])[0]


def compile_sources(members: dict[str, bytes], pythons: list[str]) -> tuple[dict[str, bytes], dict[str, str]]:
    """Compile all sources with each Python. Return the byte code by member, and the magic numbers by Python's tag."""
    sources = {name: data for name, data in members.items() if name.endswith(".py")}
    found, magics = dict[str, bytes](), dict[str, str]()
    with tempfile.TemporaryDirectory() as folder:
        for name, data in sources.items():
            path = Path(folder, "sources", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        program = ["-S", "-s", "-B", str(DEPLOY / "compile.py"), str(Path(folder, "sources"))]
        targets = [Path(folder, str(number)) for number in range(len(pythons))]
        commands = [[python, *program, str(target)] for python, target in zip(pythons, targets, strict=True)]
        for tag, target in zip(run_all(commands), targets, strict=True):
            top = f"_{tag.decode()}"
            for path in sorted(target.rglob("*.pyc")):
                found[f"{top}/{path.relative_to(target).as_posix()}"] = path.read_bytes()
            found |= {f"{top}/{name}": sources[name] for name in READ_BY_ANYIO}
            magics[tag.decode()] = found[f"{top}/gateway/__init__.pyc"][: len(MAGIC_NUMBER)].hex()
    return found, magics


def find_pythons(*, release: bool) -> list[str]:
    """Return the interpreters to compile with: this one, or one of every supported version."""
    if not release:
        return [sys.executable]
    found = []
    running = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for version in PYTHONS:
        path = sys.executable if version == running else shutil.which(f"python{version}")
        works = path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0  # noqa: S603
        if not path or not works:
            raise fail(f"a release needs python{version} on PATH for its byte code")
        found.append(path)
    return found


def write_zip(members: dict[str, bytes]) -> bytes:
    """Return the bytes of the archive: members sorted by name, with fixed times and modes."""
    buffer = io.BytesIO()
    buffer.write(FIRST_LINES)
    with zipfile.ZipFile(buffer, "a") as archive:  # "a": the offsets count the first lines
        for name, raw in sorted(members.items()):
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system, info.external_attr = 3, 0o100644 << 16
            archive.writestr(info, raw, zipfile.ZIP_DEFLATED, compresslevel=9)
    return buffer.getvalue()


def replace_file(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write a file in one step, because somebody may be reading it. An interrupted build leaves nothing of it."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(data)
        if mode is not None:
            unfinished.chmod(mode)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def build(target: Path, *, wheels: Path, release: bool) -> str:
    """Make the archive at `target` and return its SHA-256."""
    pythons = find_pythons(release=release)  # first, so that a release that cannot be made fails at once
    fetch(wheels, release=release)
    contents = Contents()
    collect_wheels(contents, wheels)
    version, commit = collect_gateway(contents), build_id()
    contents.members[BUILD_FILE] = commit.encode()
    compiled, magics = compile_sources(contents.members, pythons)
    members = contents.members | compiled
    launcher = (DEPLOY / "launcher.py").read_bytes()
    members["__main__.py"] = launcher.replace(b"@VERSION@", f"{version} (build {commit})".encode())
    try:
        bill = sbom(version, commit, contents.wheels, NOTICE.read_text("utf-8"), members["typing_extensions.py"])
    except ValueError as error:
        raise fail(str(error)) from error
    members["META/sbom.cdx.json"] = bill
    manifest = {
        "version": version,
        "bytecode": magics,
        "sha256": {name: sha256(data) for name, data in sorted(members.items())},
    }
    members["META/manifest.json"] = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    data = write_zip(members)
    replace_file(target, data, mode=0o755)
    return sha256(data)


def main() -> None:
    """Build and print the file's hash as `sha256sum` does."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("-o", "--output", type=Path, default=HERE / "gateway.pyz", help="where to write the archive")
    parser.add_argument("--wheels", type=Path, default=WHEELS, help="where the pinned wheels are kept")
    parser.add_argument("--release", action="store_true", help=f"for all platforms and Python {', '.join(PYTHONS)}")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("build_zipapp.py: it was asked to end"))
    digest = build(options.output, wheels=options.wheels, release=options.release)
    sys.stdout.write(f"{digest}  {options.output.name}\n")


if __name__ == "__main__":
    main()
