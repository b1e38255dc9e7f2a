"""All data of a gateway moves to another database and back, and what came of a copy that was cut short is whole."""

import json
import signal
import sqlite3
import sys
import time
from pathlib import Path

import pytest
from postgres_server import PostgresServer
from running import ROOT, command, environment, launch

pytestmark = pytest.mark.slow


REQUESTS = 8000
COPIED = """
    SELECT query_to_xml('SELECT id FROM traffic LIMIT 1', false, false, '') WHERE to_regclass('traffic') IS NOT NULL
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a made-up day."""
    folder = tmp_path_factory.mktemp("demo")
    assert command("demo-data", "--data-dir", folder, "--requests", REQUESTS).returncode == 0
    return folder


def counts(path: Path) -> dict[str, int]:
    """Return the rows of each table of a SQLite database but those that lapse."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in names}


def test_data_moves_to_a_server_and_back(demo: Path, tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.new_database()
    there = command("db", "copy", "--from", f"sqlite:{demo}/gateway.db", "--to", url, "--json")
    assert there.returncode == 0, there.stderr
    told = json.loads(there.stdout)
    assert told["rows"]["traffic"] == REQUESTS
    assert told["events"] == counts(demo / "gateway.db")["audit_events"]
    verified = command("audit", "verify", "--data-dir", tmp_path / "host", GATEWAY_DATABASE_URL=url)
    assert verified.returncode == 0, verified.stderr
    back = command("db", "copy", "--from", url, "--to", f"sqlite:{tmp_path}/back/gateway.db")
    assert back.returncode == 0, back.stderr
    before, after = counts(demo / "gateway.db"), counts(tmp_path / "back" / "gateway.db")
    # The server's database also notes which key its hosts have for hashes of secrets.
    assert {name: after[name] - before[name] for name in before if after[name] != before[name]} == {"meta": 1}
    assert command("audit", "verify", "--data-dir", tmp_path / "back").returncode == 0
    for cell in ("detections", "cost_microusd"):
        assert cells(demo, cell) == cells(tmp_path / "back", cell)


def cells(folder: Path, column: str) -> list[object]:
    with sqlite3.connect(f"file:{folder}/gateway.db?mode=ro", uri=True) as connection:
        return connection.execute(f"SELECT position, {column} FROM traffic ORDER BY position").fetchall()


def test_a_copy_that_was_cut_short_can_be_repeated_and_is_no_database_before(
    demo: Path, tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.new_database()
    words = ("db", "copy", "--from", f"sqlite:{demo}/gateway.db", "--to", url)
    running = launch([sys.executable, "-m", "gateway", *words], cwd=ROOT, env=environment())
    end = time.monotonic() + 20
    while "trf_" not in postgres.query(COPIED, database=url.rpartition("/")[2]):
        assert time.monotonic() < end
    running.popen.send_signal(signal.SIGKILL)
    running.popen.wait()
    refused = command("audit", "verify", "--data-dir", tmp_path / "host", GATEWAY_DATABASE_URL=url)
    assert refused.returncode == 2
    assert "run `db copy` again" in refused.stderr
    other = command("db", "copy", "--from", f"sqlite:{tmp_path}/none.db", "--to", url)
    assert (other.returncode, "no database at" in other.stderr) == (2, True)
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert command("audit", "verify", "--data-dir", tmp_path / "host", GATEWAY_DATABASE_URL=url).returncode == 0
    again = command(*words)
    assert (again.returncode, "holds the data of a gateway" in again.stderr) == (2, True)


def test_a_gateway_goes_on_where_the_copied_rows_end_and_is_backed_up(
    demo: Path, tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.new_database()
    assert command("db", "copy", "--from", f"sqlite:{demo}/gateway.db", "--to", url).returncode == 0
    made = command(
        "keys",
        "create",
        "--name",
        "later",
        "--scopes",
        "shield:scan",
        "--data-dir",
        tmp_path / "host",
        GATEWAY_DATABASE_URL=url,
    )
    assert made.returncode == 0, made.stderr
    backup = tmp_path / "all.backup"
    saved = command("backup", backup, "--data-dir", tmp_path / "host", GATEWAY_DATABASE_URL=url)
    assert saved.returncode == 0, saved.stderr
    restored = command("restore", backup, "--data-dir", tmp_path / "restored")
    assert restored.returncode == 0, restored.stderr
    assert "later" in command("keys", "list", "--data-dir", tmp_path / "restored").stdout
    seal = str(tmp_path / "host" / "gateway.db.seal")
    other = {"GATEWAY_DATABASE_URL": postgres.new_database(), "GATEWAY_SEAL_KEY_FILE": seal}
    on_server = command("restore", backup, "--data-dir", tmp_path / "other", **other)
    assert on_server.returncode == 0, on_server.stderr
    assert postgres.password not in on_server.stdout + on_server.stderr
    assert "later" in command("keys", "list", "--data-dir", tmp_path / "other", **other).stdout
    assert command("audit", "verify", "--data-dir", tmp_path / "other", **other).returncode == 0
    again = command("restore", backup, "--data-dir", tmp_path / "other", **other)
    assert (again.returncode, "name an empty database" in again.stderr) == (2, True)
