#!/usr/bin/env python3
"""Make a release in one folder, dist/VERSION: archive, wheel, bill of materials, notes, SHA256SUMS and its signature.

    python3 deploy/release.py --key release_key

Everything is built from a fresh clone of the present commit, so that nothing that lies around gets in. The archive is
for all supported Pythons and platforms where these Pythons are on PATH and the wheels can be had. Otherwise it is for
this Python and platform, and the notes say so. The folder gets its name when all is made and verified.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMESPACE = "gateway"
ARCHIVE, SBOM, NOTES, SUMS = "gateway.pyz", "gateway.sbom.cdx.json", "RELEASE_NOTES.md", "SHA256SUMS"
SIGNERS = "allowed_signers.sample"
VERIFY = f"""## Verify

Take `allowed_signers` from a place that you trust, not from this folder: `{SIGNERS}` only shows its form.

    ssh-keygen -Y verify -f allowed_signers -I {{signer}} -n {NAMESPACE} -s {SUMS}.sig < {SUMS}
    sha256sum -c {SUMS}
    python3 -I -S {ARCHIVE} verify
"""


def fail(reason: str) -> SystemExit:
    """Return the error that ends the release with one line."""
    return SystemExit(f"release.py: {reason}")


def run(*command: str | Path, folder: Path = ROOT, stdin: bytes = b"", **environment: str) -> str:
    """Run a program and return what it wrote. Ends the release with the last line of one that fails."""
    words = list(map(str, command))
    done = subprocess.run(words, cwd=folder, input=stdin, capture_output=True, env=os.environ | environment)  # noqa: S603
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip() or "it wrote nothing").splitlines()[-1]
        raise fail(f"{' '.join(words[:4])} failed: {last}")
    return done.stdout.decode(errors="replace").strip()


def section(version: str) -> str:
    """Return what the changelog says about a version."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    found = re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    if not found or not found[1].strip():
        raise fail(f'CHANGELOG.md has no section "## [{version}] - DATE": rename [Unreleased], and begin a new one')
    return found[1].strip()


def tag(version: str) -> str:
    """Return the commit that has the tag of a version, "" if there is none."""
    name = f"v{version}"
    return run("git", "rev-parse", "--short=12", f"{name}^{{commit}}") if run("git", "tag", "--list", name) else ""


def public_key(key: Path) -> tuple[str, str]:
    """Return type and text of the public half of the key, and its comment."""
    beside = key if key.suffix == ".pub" else key.with_name(f"{key.name}.pub")
    text = beside.read_text("utf-8") if beside.exists() else run("ssh-keygen", "-y", "-P", "", "-f", key)
    kind, words, *comment = text.split(maxsplit=2)
    return f"{kind} {words}", comment[0].strip() if comment else ""


def build_archive(clone: Path, target: Path, wheels: Path) -> str:
    """Build the archive and return what it is for: everything, or this Python and platform."""
    build: list[str | Path] = [sys.executable, clone / "build_zipapp.py", "--output", target, "--wheels", wheels]
    try:
        run(*build, "--release", folder=clone)
    except SystemExit as error:
        why = str(error).rpartition("build_zipapp.py: ")[2]
        sys.stderr.write(f"NOT FOR ALL PYTHONS AND PLATFORMS: {why}\n")
        run(*build, folder=clone)
    else:
        return f"`{ARCHIVE}` has byte code and the native matcher for every supported Python and platform."
    with zipfile.ZipFile(target) as archive:
        tags = json.loads(archive.read("META/manifest.json"))["bytecode"]
    pythons = ", ".join(re.sub(r"^cpython-(\d)(\d+)$", r"\1.\2", tag) for tag in sorted(tags))
    platform = f"{sys.platform} {os.uname().machine}"
    return (
        f"**`{ARCHIVE}` has byte code for CPython {pythons} and the native matcher for {platform} only.** "
        "It runs on other supported Pythons and platforms, but starts and scans more slowly there."
    )


def build_all(folder: Path, wheels: Path) -> str:
    """Build archive, wheel and bill of materials into a folder. Return what the archive is for."""
    with tempfile.TemporaryDirectory() as scratch:
        clone = Path(scratch, "source")
        run("git", "clone", "--quiet", "--no-hardlinks", ROOT, clone)
        made_at = run("git", "log", "-1", "--format=%ct", folder=clone)
        scope = build_archive(clone, folder / ARCHIVE, wheels)
        pip: list[str | Path] = [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            folder,
            ".",
        ]
        run(*pip, folder=clone, SOURCE_DATE_EPOCH=made_at)
    with zipfile.ZipFile(folder / ARCHIVE) as archive:
        (folder / SBOM).write_bytes(archive.read("META/sbom.cdx.json"))
    return scope


def sign(folder: Path, key: Path, signer: str, public: str) -> None:
    """Write the sums of all files and their signature."""
    (folder / SIGNERS).write_text(f'{signer} namespaces="{NAMESPACE}" {public}\n', "utf-8")
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / SUMS).write_text("".join(sums), "utf-8")
    run("ssh-keygen", "-Y", "sign", "-f", key.resolve(), "-n", NAMESPACE, folder / SUMS)


def verify(folder: Path, signer: str, commit: str) -> None:
    """Check the folder as its user will, and that the archive is of this commit."""
    words: list[str | Path] = ["ssh-keygen", "-Y", "verify", "-f", folder / SIGNERS, "-I", signer, "-n", NAMESPACE]
    run(*words, "-s", folder / f"{SUMS}.sig", stdin=(folder / SUMS).read_bytes())
    run(sys.executable, "-I", "-S", folder / ARCHIVE, "verify", "--bytecode")
    build = json.loads(run(sys.executable, "-I", "-S", folder / ARCHIVE, "version", "--json"))["build"]
    if build != commit:
        raise fail(f"the archive says that it is of {build}, not of {commit}")


def release(output: Path, key: Path, signer: str, wheels: Path) -> Path:
    """Make the folder of the present version and return it. Leaves nothing if it fails."""
    found = re.search(r'^__version__ = "([^"]+)"', (ROOT / "gateway" / "__init__.py").read_text("utf-8"), re.MULTILINE)
    assert found, "gateway/__init__.py names the version"
    version, target = found[1], output / found[1]
    if run("git", "status", "--porcelain"):
        raise fail("the working tree differs from the commit: commit the changes, or remove them")
    commit = run("git", "rev-parse", "--short=12", "HEAD")
    if tag(version) not in ("", commit):
        raise fail(f"the tag v{version} is of another commit, {tag(version)}: set a new version in gateway/__init__.py")
    changes = section(version)
    if target.exists():
        raise fail(f"{target} exists: move it away")
    if not key.exists():
        raise fail(f"there is no key {key}: make one with ssh-keygen -t ed25519 -f {key} -C you@example.org")
    public, comment = public_key(key)
    signer = signer or comment
    if not re.fullmatch(r"[^\s\",*?!]+", signer):
        raise fail("the key has no comment that can name the signer: name one with --signer, such as an e-mail address")
    output.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as unfinished:
        folder = Path(tempfile.mkdtemp(prefix=f".{version}.", dir=output))
        unfinished.callback(shutil.rmtree, folder)
        scope = build_all(folder, wheels)
        notes = (
            f"# Security Gateway {version}\n\nBuild {commit}. {scope}\n\n{changes}\n\n{VERIFY.format(signer=signer)}"
        )
        (folder / NOTES).write_text(notes, "utf-8")
        sign(folder, key, signer, public)
        verify(folder, signer, commit)
        folder.chmod(0o755)
        folder.rename(target)
        unfinished.pop_all()
    return target


def main() -> None:
    """Make the release and list its files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--key", type=Path, required=True, help="SSH key to sign with, or the .pub of a key in an agent"
    )
    parser.add_argument("--signer", default="", help="who signs, as in allowed_signers; the key's comment if left out")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder for the folder of the release")
    parser.add_argument("--wheels", type=Path, default=ROOT / "build" / "wheels", help="where pinned wheels are kept")
    options = parser.parse_args()
    target = release(options.output.resolve(), options.key, options.signer, options.wheels.resolve())
    for path in sorted(target.iterdir()):
        sys.stdout.write(f"{path}\n")
    if not tag(target.name):
        sys.stdout.write(f"Now tag the commit: git tag -s v{target.name} -m {target.name}\n")


if __name__ == "__main__":
    main()
