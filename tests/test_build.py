"""The build: refuses a release that is not whole, leaves no process, and has recipes that hold what they say."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from running import ROOT, until

import build_zipapp
from deploy.sbom import Wheel, noticed, sbom
from gateway import bundle
from gateway.cli.bytecode import compile_pyc

UNIT = ROOT / "deploy" / "gateway.service"
STAYING = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"
INTERRUPTED = """
import sys
root, program, *files = sys.argv[1:]
sys.argv[1:] = []
sys.path.insert(0, root)
import build_zipapp
build_zipapp.build = lambda *_, **__: build_zipapp.run_all([[sys.executable, "-c", program, file] for file in files])
build_zipapp.main()
"""


def test_a_release_needs_every_python_and_says_which_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "build_zipapp.py"), "--release", "-o", str(tmp_path / "gateway.pyz")]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert re.fullmatch(r"build_zipapp.py: a release needs python3\.1\d on PATH for its byte code\n", done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_every_pinned_file_has_a_hash_and_every_project_one_version() -> None:
    lock = (ROOT / "deploy" / "requirements.txt").read_text()
    projects = re.findall(r"^([a-z0-9-]+)==\S+ \\$", lock, re.MULTILINE)
    assert projects == sorted(set(projects))
    lines = [line for line in lock.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==\S+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in lines)


def test_a_release_fetches_only_the_wheels_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(build_zipapp, "run_all", asked.extend)
    pinned = build_zipapp.pinned_projects()
    for name in pinned.keys() - {"pyahocorasick"}:
        (tmp_path / f"{name}-{pinned[name]}-py3-none-any.whl").touch()
    for python in build_zipapp.PYTHONS:
        tag = f"cp{python.replace('.', '')}"
        for platforms in build_zipapp.PLATFORMS:
            (tmp_path / f"pyahocorasick-{pinned['pyahocorasick']}-{tag}-{tag}-{'.'.join(platforms)}.whl").touch()
    build_zipapp.fetch(tmp_path, release=True)
    assert asked == []
    next(tmp_path.glob("*-cp312-win_amd64.whl")).unlink()
    build_zipapp.fetch(tmp_path, release=True)
    (command,) = asked
    assert command[-4:] == ["--python-version", "3.12", "--platform", "win_amd64"]


def test_the_notice_and_the_page_of_dependencies_name_what_is_pinned_and_its_license() -> None:
    said = noticed((ROOT / "NOTICE").read_text("utf-8"))
    assert {name: one.version for name, one in said.items()} == build_zipapp.pinned_projects()
    page = (ROOT / "docs" / "develop" / "dependencies.md").read_text("utf-8")
    rows = re.findall(r"^\| ([a-z0-9-]+) \|.*\| (\S+) \|$", page, re.MULTILINE)
    assert {name: license for name, license in rows if name in said} == {
        name: one.license for name, one in said.items()
    }


def test_a_bill_of_materials_needs_the_notice_of_each_project() -> None:
    wheels = {("anyio", "9.9"): [Wheel("anyio-9.9-py3-none-any.whl", "0" * 64, ">=3.10")]}
    with pytest.raises(ValueError, match="NOTICE must name anyio 9.9"):
        sbom("1", "unknown", wheels, (ROOT / "NOTICE").read_text("utf-8"), b"")


def test_the_build_id_is_the_commit_and_says_when_the_sources_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        return subprocess.run(["git", *who, *words], cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    monkeypatch.setattr(build_zipapp, "HERE", tmp_path)
    assert build_zipapp.build_id() == "unknown"
    (tmp_path / "gateway").mkdir()
    for name in ("gateway/log.py", "README.md"):
        (tmp_path / name).write_text("")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    commit, tree = git("rev-parse", "HEAD")[:12], tmp_path / "tree"
    git("worktree", "add", "-q", str(tree))
    assert build_zipapp.build_id() == commit
    (tmp_path / "README.md").write_text("no part of the archive")
    assert build_zipapp.build_id() == commit
    (tmp_path / "gateway" / "new.py").write_text("")
    assert build_zipapp.build_id() == f"{commit}+dirty"
    monkeypatch.setattr(build_zipapp, "HERE", tmp_path / "gateway")
    assert build_zipapp.build_id() == "unknown", "a copy inside another repository"
    monkeypatch.setattr(build_zipapp, "HERE", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build_zipapp.build_id() == "unknown", "no git"
    for folder, build in {tmp_path: f"{commit}+checkout", tree: f"{commit}+checkout", tree / "x": "unknown"}.items():
        monkeypatch.setattr(bundle, "ROOT", str(folder))
        assert bundle.build_id.__wrapped__() == build, "as the program itself reads it"


def test_byte_code_is_the_same_whatever_the_process_has_imported() -> None:
    path = ROOT / "gateway" / "cli" / "bytecode.py"
    program = (
        "import sys; sys.path.insert(0, '.'); from gateway.cli.bytecode import compile_pyc; "
        "sys.stdout.buffer.write(compile_pyc(open(sys.argv[1], 'rb').read(), 'gateway/cli/bytecode.py'))"
    )
    command = [sys.executable, "-I", "-c", program, str(path)]
    alone = subprocess.run(command, capture_output=True, check=True, cwd=ROOT).stdout
    assert compile_pyc(path.read_bytes(), "gateway/cli/bytecode.py") == alone


def test_a_program_that_fails_ends_all_others_and_is_named() -> None:
    slow = [sys.executable, "-c", "import time; time.sleep(600)"]
    bad = [sys.executable, "-c", "import sys; sys.exit('first line\\na bad rule')"]
    began = time.monotonic()
    with pytest.raises(SystemExit, match="failed: a bad rule"):
        build_zipapp.run_all([bad, slow])
    assert time.monotonic() - began < 300


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # an orphan that has ended is there until it is reaped
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 1)])
def test_a_build_that_is_interrupted_leaves_no_process(tmp_path: Path, sent: signal.Signals, status: int) -> None:
    files = [tmp_path / "one", tmp_path / "other"]
    command = [sys.executable, "-c", INTERRUPTED, str(ROOT), STAYING, *map(str, files)]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as build:
        until(lambda: all(path.exists() and path.read_text() for path in files))
        build.send_signal(sent)
        build.communicate(timeout=60)
    assert build.returncode == status
    for path in files:
        until(lambda path=path: is_gone(int(path.read_text())))


def test_a_file_of_the_build_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "gateway.pyz"
    build_zipapp.replace_file(target, b"old", mode=0o755)
    assert target.stat().st_mode & 0o777 == 0o755

    def interrupted(path: Path, data: bytes) -> int:
        path.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build_zipapp.replace_file(target, b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["gateway.pyz"]
    assert target.read_bytes() == b"old"


def test_the_unit_exposes_little() -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here")
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", str(UNIT)]
    done = subprocess.run(command, capture_output=True, text=True)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze is too old to look at a file")
    assert done.returncode == 0, done.stdout[-300:] + done.stderr


def test_the_recipes_start_the_archive_isolated_and_without_site_packages() -> None:
    assert re.search(r"^ExecStart=/usr/bin/python3 -I -S \S+gateway\.pyz serve$", UNIT.read_text(), re.MULTILINE)
    recipe = (ROOT / "deploy" / "Containerfile").read_text()
    assert '"-I", "-S", "/gateway.pyz"' in recipe
    assert "USER 65532:65532" in recipe
    check = re.search(r"^HEALTHCHECK .*\\\n +CMD (\[.*\])$", recipe, re.MULTILINE)
    assert check and json.loads(check[1]) == ["/usr/bin/python3", "-I", "-S", "/gateway.pyz", "health"]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()  # a link to .containerignore
    assert [line for line in ignored if not line.startswith("#")] == ["*", "!gateway.pyz"]
