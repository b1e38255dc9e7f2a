"""Providers by the command line beside a running gateway of two workers: what is typed there holds in both at once."""

import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from running import Done, Served, start, tell
from upstream import TEXT

WORKERS_ASKED = 12
SECRET = "sk-made-up-e2e-0123456789"

Run = Callable[..., Done]


@pytest.fixture(scope="module")
def site(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Two workers, and no provider yet."""
    data_dir = tmp_path_factory.mktemp("providers")
    served = start(archive, data_dir, "--workers", "2")
    served.make_key()
    yield served
    assert served.process.stop() == 0
    assert not any("Traceback" in line or SECRET in line for line in served.process.lines)


@pytest.fixture
def run(site: Served) -> Run:
    def call(*arguments: str, stdin: str = "", code: int = 0) -> Done:
        done = site.command("providers", *arguments, stdin=stdin)
        assert done.returncode == code, done.stderr
        assert SECRET not in done.stdout + done.stderr
        return done

    return call


def test_a_provider_typed_in_beside_the_server_answers_in_every_worker(site: Served, run: Run, upstream: str) -> None:
    tell(upstream, "/__reset", {})
    first = site.chat("Hello")
    assert first.json["choices"][0]["message"]["content"] == "Hello", "without a provider the built-in model answers"
    lab = ("--base-url", f"{upstream}/v1", "--allow-private", "true", "--api-key", "-")
    added = run("add", "--name", "lab", "--models", "test-*", *lab, stdin=SECRET + "\n")
    assert added.stdout.strip().startswith("prv_")
    answers = [site.chat("Hello") for _ in range(WORKERS_ASKED)]
    assert {answer.json["choices"][0]["message"]["content"] for answer in answers} == {TEXT}
    log = tell(upstream, "/__log")
    assert isinstance(log, list)
    assert {entry["headers"]["authorization"] for entry in log} == {f"Bearer {SECRET}"}
    (shown,) = json.loads(run("list", "--json").stdout)
    assert (shown["name"], shown["api_key_source"], shown["has_api_key"]) == ("lab", "stored", True)
    assert stat.S_IMODE((site.data_dir / "gateway.db.provider-keys").stat().st_mode) == 0o600
    assert SECRET.encode() not in (site.data_dir / "gateway.db").read_bytes()
    assert "test-model" in run("test", "lab").stdout
    run("disable", "lab")
    assert {site.chat("Hello").status for _ in range(WORKERS_ASKED)} == {404}
    run("enable", "lab")
    changed = json.loads(run("update", "lab", "--models", "other-*", "--priority", "7", "--json").stdout)
    assert (changed["models"], changed["priority"], changed["version"]) == (["other-*"], 7, 4)
    assert {site.chat("Hello").status for _ in range(WORKERS_ASKED)} == {404}
    run("remove", "lab")
    assert {site.chat("Hello").status for _ in range(WORKERS_ASKED)} == {200}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("add", "--name", "x", "--base-url", "http://169.254.169.254/v1"), "never allowed"),
        (("add", "--name", "x", "--base-url", "https://192.0.2.1/v1", "--api-key", SECRET), "--api-key must be"),
        (("update", "nobody", "--weight", "2"), "no such provider"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(run: Run, arguments: tuple[str, ...], says: str) -> None:
    done = run(*arguments, code=2)
    assert says in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_a_test_that_fails_says_why_and_ends_with_one(run: Run) -> None:
    run("add", "--name", "gone", "--base-url", "http://127.0.0.1:9/v1", "--allow-private", "true")
    done = run("test", "gone", code=1)
    assert "cannot be reached" in done.stdout
    assert json.loads(run("test", "gone", "--json", code=1).stdout)["ok"] is False
    run("remove", "gone")
