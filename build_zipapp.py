#!/usr/bin/env python3
"""Build gateway.pyz, byte-identical for the same inputs: for this Python and platform, or for all with --release.

Needs the standard library and pip. The wheels named in deploy/requirements.txt are fetched once into build/wheels and
checked against their pinned hashes at every build. `python3 build_zipapp.py` takes the native matcher of this platform
and the byte code of this Python, and runs more slowly on others; `--release` takes all of both, or makes no file.

Layout of the archive:
    __main__.py           refuses an old Python, keeps host packages out, starts _boot.py
    _boot.py              serves modules and data from memory: the byte-code pack of the running Python
    sources.zip           the sources, as they are: gateway/, anyio/ and the others; packed as a whole
    data.zip              what the sources read: statements, pages, tables, and of themselves what a start reads
    rules.json            the shield's rules
    rules.plans           how they are looked for, worked out ahead
    _pyc/TAG.pack         one byte-code pack a Python version; in shared.pack what they have alike
    _regexes/TAG.pack     the rules' regexes, compiled, for each as well; what all have alike is in the first
    _native/LIBC/*.so     the C automaton, by C library and extension suffix, without what debuggers want of it; of a
                          platform's files the one that the others are most like, and of those the difference to it
    META/                 manifest with a SHA-256 a member, CycloneDX SBOM, licences
"""

import argparse
import hashlib
import io
import json
import marshal
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

if sys.version_info < (3, 11):  # noqa: UP036 - an old Python gets one clear line
    sys.exit("build_zipapp.py needs Python 3.11 or newer")

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # a Python that keeps all others out has not even that
from deploy.processes import Processes  # noqa: E402

LOCK = HERE / "deploy" / "requirements.txt"
WHEELS = HERE / "build" / "wheels"
LAUNCHER = HERE / "deploy" / "launcher.py"
BOOT = HERE / "deploy" / "boot.py"
FIRST = HERE / "deploy" / "first.txt"  # the modules that a start runs: not packed into blocks
TYPING = HERE / "deploy" / "typing_extensions.py"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment a zip file can name
# A zip file is found from its end. What was cut off there is read as a program, whose second line names its encoding.
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
UNUSED = "anyio/pytest_plugin.py", "anyio/_backends/_trio.py", "anyio/to_process.py", "idna/__main__.py", "idna/cli.py"
DATA = (".sql", ".json", ".bin", ".html", ".css", ".js", ".svg")
# What is packed already, has to be read in place, or is compiled by Python itself at each start.
STORED = (".pack", ".plans", ".difference", "data.zip", "__main__.py")
READ_AT_START = ("anyio/__init__.py", "anyio/abc/__init__.py")  # in which anyio looks up where its names come from


@dataclass(slots=True)
class Contents:
    """What goes into the archive. members: bytes by name. components: (wheel, SHA-256) by (project, version)."""

    members: dict[str, bytes] = field(default_factory=dict)
    components: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict)


def sha256(data: bytes) -> str:
    """Return the SHA-256 of `data` as hex."""
    return hashlib.sha256(data).hexdigest()


def pinned_hashes() -> set[str]:
    """Return every SHA-256 the lock file allows."""
    return set(re.findall(r"--hash=sha256:([0-9a-f]{64})", LOCK.read_text("utf-8")))


def pinned_projects() -> dict[str, str]:
    """Return the version of every project in the lock file."""
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ;\\]+)", LOCK.read_text("utf-8"), re.MULTILINE))


def have_wheels(wheels: Path) -> bool:
    """Tell whether every pinned project has a wheel that this Python could use, without asking an index."""
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    names = [path.name for path in wheels.glob("*.whl")]
    for project, version in pinned_projects().items():
        start = f"{project.replace('-', '_')}-{version}-"
        mine = [n for n in names if n.startswith(start) and ("-none-any" in n or (f"-{tag}-" in n and is_mine(n)))]
        if not mine:
            return False
    return True


def is_mine(wheel: str) -> bool:
    """Tell whether a binary wheel was made for the platform that runs the build."""
    machine = os.uname().machine if hasattr(os, "uname") else "amd64"
    if sys.platform == "linux":
        return ("musllinux" if is_musl() else "manylinux") in wheel and machine in wheel
    return ("macosx" if sys.platform == "darwin" else "win") in wheel


def is_musl() -> bool:
    """Tell whether the C library is musl, which does not know glibc's confstr name."""
    try:
        return not os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return True


def fetch(wheels: Path, *, release: bool) -> None:
    """Download what is missing, each file checked by pip against the lock."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--no-deps"]
    pip += ["--only-binary", ":all:", "--dest", str(wheels), "--requirement", str(LOCK)]
    wheels.mkdir(parents=True, exist_ok=True)
    if release:
        for python in PYTHONS:
            for platforms in PLATFORMS:
                tags = [part for platform in platforms for part in ("--platform", platform)]
                run_pip([*pip, "--implementation", "cp", "--python-version", python, *tags])
    elif not have_wheels(wheels):
        run_pip(pip)


def run_pip(command: list[str]) -> None:
    """Run pip, and end with one line when it cannot do its part."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)  # noqa: S603 - pip itself
    if done.returncode:
        last = (done.stderr.strip() or "pip said nothing").splitlines()[-1]
        sys.exit(f"build_zipapp.py: pip could not fetch the pinned wheels: {last}")


def collect_wheels(contents: Contents, wheels: Path) -> None:
    """Take sources, native files and licences out of every wheel whose hash is pinned.

    A wheel of another version, left over from before, is not pinned and is left alone. Raises SystemExit when two
    wheels want to be the same native file.
    """
    allowed = pinned_hashes()
    for path in sorted(wheels.glob("*.whl")):
        raw = path.read_bytes()
        if sha256(raw) not in allowed:
            continue
        project, version = path.name.split("-")[:2]
        contents.components.setdefault((project.replace("_", "-"), version), []).append((path.name, sha256(raw)))
        with zipfile.ZipFile(io.BytesIO(raw)) as wheel:
            for name in wheel.namelist():
                add_wheel_member(contents, path.name, project, name, wheel.read(name))
    missing = set(pinned_projects()) - {project for project, _ in contents.components}
    if missing:
        sys.exit(f"build_zipapp.py: no pinned wheel for {', '.join(sorted(missing))}: remove {wheels} and try again")


def add_wheel_member(contents: Contents, wheel: str, project: str, name: str, data: bytes) -> None:
    """File one member of a wheel under its name in the archive, or leave it out."""
    if name.endswith((".so", ".pyd")):
        libc = next(libc for mark, libc in LIBCS if mark in wheel)
        member = f"_native/{libc}/{name}"
        if member in contents.members:
            sys.exit(f"build_zipapp.py: two wheels want to be {member}")
        contents.members[member] = without_debugging(data)
    elif ".dist-info/licenses/" in name and not name.endswith("/"):
        contents.members[f"META/licenses/{project}/{name.rpartition('/')[2]}"] = data
    elif name.endswith(".py") and name not in UNUSED:
        contents.members[name] = data


def without_debugging(native: bytes) -> bytes:
    """Return a native file as far as a process maps it: what follows in Linux's is for debuggers, and most of it.

    The table that names the sections stands at the end and goes too; nothing asks for it to map and run the file.
    """
    if not native.startswith(b"\x7fELF\x02\x01"):  # 64 bits, little endian, as all of Linux's wheels are
        return native
    (table,), (each, count) = struct.unpack_from("<Q", native, 32), struct.unpack_from("<HH", native, 54)
    end = table + each * count
    for place in range(table, end, each):
        begin, _, _, size = struct.unpack_from("<4Q", native, place + 8)
        end = max(end, begin + size)
    head = bytearray(native[:end])
    struct.pack_into("<Q", head, 40, 0)  # where the table of sections begins, and how many there are
    struct.pack_into("<HH", head, 60, 0, 0)
    return bytes(head)


def plan_rules() -> bytes:
    """Return how the rules are looked for. Kept beside rules.json for checkouts too. Raises SystemExit as a build."""
    with Processes() as processes:
        return make_plans(processes)


def make_plans(processes: Processes) -> bytes:
    """Plan a share of the rules in each process, which takes seconds, if they or the code of the shield are new."""
    parts = [HERE / "rules.json", *sorted((HERE / "gateway" / "shield").glob("*.py"))]
    parts.append(HERE / "gateway" / "shield" / "grams.json")
    kept = HERE / "build" / f"plans-{sha256(b''.join(path.read_bytes() for path in parts))[:32]}.plans"
    if not kept.exists():
        which = [f"{share} {processes.most}".encode() for share in range(processes.most)]
        shares = processes.at_once(partial(processes.run, "plan", each) for each in which)
        kept.parent.mkdir(exist_ok=True)
        keep(kept, processes.run("layout", marshal.dumps(shares)))
    plans = kept.read_bytes()
    beside = HERE / "rules.plans"
    if not beside.exists() or beside.read_bytes() != plans:
        keep(beside, plans)
    return plans


def collect_gateway(contents: Contents) -> str:
    """Take the gateway's own files, and return its version."""
    for path in sorted((HERE / "gateway").rglob("*")):
        name = path.relative_to(HERE).as_posix()
        if path.is_file() and path.suffix in (".py", *DATA):
            contents.members[name] = path.read_bytes()
    contents.members["rules.json"] = (HERE / "rules.json").read_bytes()
    contents.members["META/licenses/gateway/LICENSE"] = (HERE / "LICENSE").read_bytes()
    found = re.search(r'^__version__ = "([^"]+)"', (HERE / "gateway" / "__init__.py").read_text("utf-8"), re.MULTILINE)
    assert found, "gateway/__init__.py names the version"
    contents.members["_boot.py"] = BOOT.read_bytes()
    contents.members[TYPING.name] = TYPING.read_bytes()
    contents.members["__main__.py"] = LAUNCHER.read_bytes().replace(b"@VERSION@", found[1].encode())
    return found[1]


def make_packs(pythons: list[str], members: dict[str, bytes]) -> tuple[dict[str, bytes], dict[str, Any], list[str]]:
    """Compile sources and regexes with each Python in a fresh process; return packs by their names, and `rules.plans`.

    The native files leave `members` and are among the packs. The second value says what the manifest has of them, the
    third in which order the sources take least room. Raises SystemExit when a process fails.
    """
    natives = {name: members.pop(name) for name in list(members) if name.startswith("_native/")}
    sources = [(name, data) for name, data in sorted(members.items()) if name.endswith(".py")]
    with Processes() as processes:
        code = partial(pack_code, processes, pythons, sources, natives)
        rules, (packs, told, order) = processes.at_once((partial(pack_rules, processes, pythons), code))
    return packs | rules, told, order


def pack_code(
    processes: Processes, pythons: list[str], sources: list[tuple[str, bytes]], natives: dict[str, bytes]
) -> tuple[dict[str, bytes], dict[str, Any], list[str]]:
    """Compile the sources, and return as `make_packs` does all but what is of the rules."""
    given = marshal.dumps(sources, 2)
    made = processes.at_once(partial(processes.run, "compile", given, python=python) for python in pythons)
    first = FIRST.read_text("utf-8").split()
    done: tuple[dict[str, bytes], dict[str, Any], list[str]] = marshal.loads(  # noqa: S302 - as pack.py wrote it
        processes.run("pack", marshal.dumps((dict(map(marshal.loads, made)), first, natives, given)))
    )
    return done


def pack_rules(processes: Processes, pythons: list[str]) -> dict[str, bytes]:
    """Plan the rules and compile their regexes; return what the archive has of both."""
    plans = make_plans(processes)
    ways = [partial(compile_regexes, processes, python, plans, is_first=python == pythons[0]) for python in pythons]
    packs = marshal.dumps(dict(processes.at_once(ways)))
    return {**marshal.loads(processes.run("share", packs)), "rules.plans": plans}  # noqa: S302 - as share.py wrote it


def compile_regexes(processes: Processes, python: str, plans: bytes, *, is_first: bool) -> tuple[str, bytes]:
    """Compile the rules' regexes with `python` and return the member's name and bytes. Kept for the next build.

    is_first: whether the archive has all of them, as it has of the others what differs.
    """
    version = processes.run("version", b"", python=python)
    tag = version.decode().partition(" ")[0]
    makers = (HERE / "gateway" / "shield" / f"{name}.py" for name in ("dictionary", "factor", "regexes"))
    made_of = b"".join((version, plans, bytes([is_first]), *(path.read_bytes() for path in makers)))
    kept = HERE / "build" / f"regexes-{sha256(made_of)[:32]}.pack"
    if not kept.exists():
        keep(kept, processes.run("regexes", marshal.dumps((plans, is_first), 2), python=python))
    return f"_regexes/{tag}.pack", kept.read_bytes()


def keep(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write a file in one step: somebody may be reading it. Whoever is interrupted leaves nothing of it."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(data)
        if mode is not None:
            unfinished.chmod(mode)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


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
            sys.exit(f"build_zipapp.py: a release needs python{version} on PATH for its byte code")
        found.append(path)
    return found


def sbom(version: str, components: dict[tuple[str, str], list[tuple[str, str]]]) -> bytes:
    """Return a CycloneDX 1.5 bill of materials: the gateway and each bundled project with its wheels' hashes."""
    parts = [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{project}@{release}",
            "name": project,
            "version": release,
            "purl": f"pkg:pypi/{project}@{release}",
            "properties": [{"name": "gateway:wheel", "value": f"{name} sha256:{digest}"} for name, digest in files],
        }
        for (project, release), files in sorted(components.items())
    ]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "gateway", "name": "gateway", "version": version}},
        "components": parts,
        "dependencies": [{"ref": "gateway", "dependsOn": [part["bom-ref"] for part in parts]}],
    }
    return json.dumps(bill, sort_keys=True, indent=1).encode()


def write_zip(members: dict[str, bytes], first_lines: bytes = b"", *, stored: tuple[str, ...] = STORED) -> bytes:
    """Return the bytes of a zip: members as given, fixed times and modes. stored: how names end that are not packed."""
    buffer = io.BytesIO()
    buffer.write(first_lines)
    with zipfile.ZipFile(buffer, "a") as archive:  # "a": the offsets count the first lines
        for name, raw in members.items():
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system, info.external_attr = 3, 0o100644 << 16
            info.compress_type = zipfile.ZIP_STORED if name.endswith(stored) else zipfile.ZIP_DEFLATED
            archive.writestr(info, raw, compresslevel=9)
    return buffer.getvalue()


def put_within(members: dict[str, bytes], order: list[str]) -> dict[str, bytes]:
    """Return the members with sources, in order, and data in a zip each: Python reads all names at each start."""
    outer, sources, data = dict[str, bytes](), dict[str, bytes](), dict[str, bytes]()
    for name in dict.fromkeys([*order, *sorted(members)]):
        is_source = name.endswith(".py") and name not in ("__main__.py", "_boot.py", *READ_AT_START)
        is_data = name.startswith("gateway/") or name in READ_AT_START
        (sources if is_source else data if is_data else outer)[name] = members[name]
    return outer | {"sources.zip": write_zip(sources, stored=("",)), "data.zip": write_zip(data)}


def build(target: Path, *, wheels: Path, release: bool) -> str:
    """Make the archive at `target` and return its SHA-256. The old file is replaced in one step, never written into."""
    pythons = find_pythons(release=release)  # first, so that a release that cannot be made is told of at once
    fetch(wheels, release=release)
    contents = Contents()
    collect_wheels(contents, wheels)
    version = collect_gateway(contents)
    packs, natives, order = make_packs(pythons, contents.members)
    members = put_within(contents.members, order) | packs
    members["META/sbom.cdx.json"] = sbom(version, contents.components)
    manifest = {
        "version": version,
        "packs": sorted(name for name in packs if name.startswith("_pyc/cpython-")),
        "native": natives,
        "components": dict(sorted(contents.components)),
        "sha256": {name: sha256(data) for name, data in sorted(members.items())},
    }
    members["META/manifest.json"] = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    # Zips come first: in a file that is cut off, Python looks for the end of a zip in the last 64 KB.
    first = sorted(members, key=lambda name: (not name.endswith(".zip"), name))
    data = write_zip({name: members[name] for name in first}, FIRST_LINES)
    keep(target, data, mode=0o755)
    return sha256(data)


def main() -> None:
    """Build and print the file's hash as `sha256sum` does."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("-o", "--output", type=Path, default=HERE / "gateway.pyz", help="where to write the archive")
    parser.add_argument("--wheels", type=Path, default=WHEELS, help="where the pinned wheels are kept")
    parser.add_argument("--release", action="store_true", help=f"for all platforms and Python {', '.join(PYTHONS)}")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("build_zipapp.py: was told to end"))
    digest = build(options.output, wheels=options.wheels, release=options.release)
    sys.stdout.write(f"{digest}  {options.output.name}\n")


if __name__ == "__main__":
    main()
