"""A release, made from a clean clone and verified as its user would."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from running import ROOT, environment

Done = subprocess.CompletedProcess[str]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("ssh-keygen") and shutil.which("git")), reason="needs ssh-keygen and git"),
]
FILES = ("gateway.pyz", "gateway.sbom.cdx.json", "RELEASE_NOTES.md", "SHA256SUMS", "SHA256SUMS.sig")
SIGNER, VERSION = "release@example.org", "99.0.1"


def do(*words: object, folder: Path, stdin: str = "") -> Done:
    """Run a program in a folder."""
    command = list(map(str, words))
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, input=stdin, env=environment())


def git(*words: str, folder: Path) -> str:
    done = do("git", "-c", "user.name=t", "-c", f"user.email={SIGNER}", *words, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a clean clone of the sources as they are now, committed or not, with a version that is not released."""
    source, clone = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("clone")
    for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=ROOT).split("\0"):
        if name and (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    program = source / "gateway" / "__init__.py"
    program.write_text(re.sub(r'(?<=__version__ = ")[^"]+', VERSION, program.read_text()))
    git("init", "-q", folder=source)
    git("add", ".", folder=source)
    git("commit", "-q", "-m", "now", folder=source)
    git("clone", "-q", str(source), ".", folder=clone)
    return clone


@pytest.fixture(scope="module")
def release(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Done]:
    """Run the script in the clone, with a new key."""
    key = tmp_path_factory.mktemp("key") / "release_key"
    made = do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", SIGNER, "-f", key, folder=clone)
    assert made.returncode == 0, made.stderr

    def run(*words: str) -> Done:
        wheels = ROOT / "build" / "wheels"  # which a test run has fetched before
        command = (sys.executable, "deploy/release.py", "--key", key, "--wheels", wheels, *words)
        return do(*command, folder=clone)

    return run


def test_a_release_is_refused_from_a_changed_tree_and_without_its_changelog(
    clone: Path, release: Callable[..., Done]
) -> None:
    done = release()
    assert done.returncode == 1
    assert done.stderr.startswith('release.py: CHANGELOG.md has no section "## [') and done.stderr.count("\n") == 1
    (clone / "notes.txt").write_text("not committed")
    assert release().stderr.startswith("release.py: the working tree differs from the commit")
    (clone / "notes.txt").unlink()
    assert not list(clone.glob("dist/*"))


def test_a_release_is_whole_and_its_user_can_verify_it(clone: Path, release: Callable[..., Done]) -> None:
    changelog = clone / "CHANGELOG.md"
    section = f"## [{VERSION}] - 2026-01-31"  # with what the last release says
    changelog.write_text(re.sub(r"^## \[\d.*$", section, changelog.read_text(), count=1, flags=re.MULTILINE))
    git("commit", "-q", "-a", "-m", "release", folder=clone)
    done = release()
    assert done.returncode == 0, done.stderr
    folder = clone / "dist" / VERSION
    wheel = f"security_gateway-{VERSION}-py3-none-any.whl"
    assert {path.name for path in folder.iterdir()} == {*FILES, wheel, "allowed_signers.sample"}

    sums = (folder / "SHA256SUMS").read_text()
    signers = folder.parent / "allowed_signers"
    shutil.copy(folder / "allowed_signers.sample", signers)
    check = ("ssh-keygen", "-Y", "verify", "-f", signers, "-I", SIGNER, "-n", "gateway", "-s", "SHA256SUMS.sig")
    assert do(*check, folder=folder, stdin=sums).returncode == 0
    assert do(*check, folder=folder, stdin=sums.replace("0", "1", 1)).returncode != 0
    assert do("sha256sum", "--strict", "-c", "SHA256SUMS", folder=folder).returncode == 0
    assert {line.split()[1] for line in sums.splitlines()} == {*FILES[:3], wheel, "allowed_signers.sample"}
    verified = do(sys.executable, "-I", "-S", "gateway.pyz", "verify", "--bytecode", folder=folder)
    assert verified.returncode == 0, verified.stdout

    commit = git("rev-parse", "HEAD", folder=clone)[:12]
    version = json.loads(do(sys.executable, "-I", "-S", "gateway.pyz", "version", "--json", folder=folder).stdout)
    assert (version["version"], version["build"]) == (VERSION, commit)
    with zipfile.ZipFile(folder / wheel) as file:
        assert file.read("gateway/build.txt").decode() == commit
    assert json.loads((folder / "gateway.sbom.cdx.json").read_text())["bomFormat"] == "CycloneDX"

    notes = (folder / "RELEASE_NOTES.md").read_text()
    assert f"Build {commit}." in notes and "### Added" in notes and "### Upgrading" in notes
    assert f"ssh-keygen -Y verify -f allowed_signers -I {SIGNER} -n gateway" in notes
    with zipfile.ZipFile(folder / "gateway.pyz") as file:
        pythons = json.loads(file.read("META/manifest.json"))["bytecode"]
    is_for_all = len(pythons) > 1
    assert ("NOT FOR ALL PYTHONS AND PLATFORMS" in done.stderr) is not is_for_all
    assert ("starts and scans more slowly" in notes) is not is_for_all

    git("tag", f"v{VERSION}", "HEAD~1", folder=clone)
    assert f"release.py: the tag v{VERSION} is of another commit" in release().stderr
    git("tag", "--force", f"v{VERSION}", folder=clone)
    again = release()
    assert (again.returncode, "exists: move it away" in again.stderr) == (1, True)
    assert [path.name for path in folder.parent.iterdir() if path.is_dir()] == [VERSION]
