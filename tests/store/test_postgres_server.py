"""The server that the tests start: reachable both ways, with the right password alone, and back after a crash."""

import subprocess

import pytest
from postgres_server import USER, PostgresServer

WAYS = ("127.0.0.1", "")


@pytest.mark.parametrize("host", WAYS)
def test_the_server_answers(postgres: PostgresServer, host: str) -> None:
    assert postgres.query("SELECT current_user, 6 * 7", host=host) == f"{USER}|42"


@pytest.mark.parametrize("host", WAYS)
def test_the_server_asks_for_the_password_by_scram(postgres: PostgresServer, host: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        postgres.query("SELECT 1", host=host, password="wrong")
    assert "password authentication failed" in refused.value.stderr
    assert postgres.query("SELECT rolpassword LIKE 'SCRAM-SHA-256$%' FROM pg_authid WHERE rolcanlogin") == "t"


def test_what_was_committed_outlives_a_crash(postgres: PostgresServer) -> None:
    postgres.query("CREATE TABLE kept AS SELECT 'here' AS what")
    postgres.kill()
    postgres.start()
    assert postgres.query("SELECT what FROM kept") == "here"
