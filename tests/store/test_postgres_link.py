"""Links to a real server: types, pipelines, logins, TLS, hosts that do not serve, and a server that goes."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from certificates import certificate
from postgres_server import PostgresServer, find_programs, served
from running import until

from gateway.errors import SetupError
from gateway.store.postgres_address import Address
from gateway.store.postgres_link import Link, LinkLost, ServerError, translate


@pytest.fixture
def link() -> Iterator[Callable[..., Link]]:
    """Makes links, and closes them at the end of a test."""
    with contextlib.ExitStack() as stack:

        def make(server: PostgresServer, more: str = "", *, hosts: str = "", password: str = "") -> Link:
            address = Address.parse(f"postgresql://gateway@{hosts or f'127.0.0.1:{server.port}'}/postgres{more}")
            one = Link(address, password or server.password)
            stack.callback(one.close)
            return one

        yield make


@pytest.fixture
def tls(postgres: PostgresServer, tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """The server with TLS; two certificates that sign themselves: its own, for 127.0.0.1, and that of another one."""
    made, other = [certificate(tmp_path, "IP:127.0.0.1", name) for name in ("made", "other")]
    for file, name in zip(made, ("server.crt", "server.key"), strict=True):
        to = postgres.folder / "data" / name
        shutil.copy(file, to)
        to.chmod(0o600)
        os.chown(to, to.parent.stat().st_uid, to.parent.stat().st_gid)
    for value in ("on", "off"):
        postgres.query(f"ALTER SYSTEM SET ssl = {value}")
        postgres.query("SELECT pg_reload_conf()")
        until(lambda value=value: postgres.query("SHOW ssl") == value)
        if value == "on":
            yield Path(made[0]), Path(other[0])


@pytest.mark.parametrize("is_local", [False, True])
def test_every_type_comes_back(link: Callable[..., Link], postgres: PostgresServer, is_local: bool) -> None:
    hosts = f"{str(postgres.folder).replace('/', '%2F')}:{postgres.port}" if is_local else ""
    values = [True, -(2**63), 0.1, float("inf"), "Zoë\n'\"\\:a", "", b"\0\xff", None]
    sql = "SELECT " + ", ".join(f"${number + 1} AS c{number}" for number in range(len(values)))
    first, second, third = link(postgres, hosts=hosts).run(
        [(sql, values), ("SELECT sum(v), avg(v), count(*) FROM (VALUES (1::bigint), (2)) AS t (v)", ()), ("", ())]
    )
    assert [*first.rows[0]] == values and first.rows[0]["c4"] == values[4]
    assert [(one, type(one)) for one in second.rows[0]] == [(3, int), (1.5, float), (2, int)]
    assert third.rows == []


def test_a_pipeline_larger_than_all_buffers_neither_hangs_nor_loses_a_row(
    link: Callable[..., Link], postgres: PostgresServer
) -> None:
    one = link(postgres)
    one.run([("CREATE TEMPORARY TABLE many (n BIGINT UNIQUE, text TEXT)", ())])
    rows = [(number, str(number) * 500) for number in range(10_000)]
    results = one.run([("INSERT INTO many VALUES ($1, $2) RETURNING n, text", row) for row in rows])
    assert [tuple(result.rows[0]) for result in results] == rows and {result.rowcount for result in results} == {1}
    with pytest.raises(ServerError) as refused:
        rows = [(-1, "a"), (-2, None), (5, "secret"), (-3, "b")]
        one.run([("INSERT INTO many VALUES ($1, $2)", row) for row in rows])
    assert refused.value.code == "23505" and one.status == "I" and "secret" not in str(refused.value)
    assert one.run([("SELECT count(*) FROM many WHERE n < 0", ())])[0].rows[0][0] == 0
    assert one.run([]) == []


def test_a_wrong_password_is_refused_and_told_to_nobody(
    link: Callable[..., Link], postgres: PostgresServer, tmp_path: Path
) -> None:
    with pytest.raises(ServerError) as refused:
        link(postgres, password="hunter2")
    assert refused.value.code == "28P01" and "hunter2" not in repr(refused.value) + refused.value.message
    file = tmp_path / "password"
    file.write_text("hunter2\n")
    for address in (
        Address.parse("postgresql://a:hunter2@h1,[::1]:99/b"),
        Address.parse("postgresql://a@h1,[::1]:99/b", password_file=str(file)),
    ):
        assert address.password() == "hunter2" and "hunter2" not in repr(address)
        assert address.shown == "postgresql://a@h1:5432,[::1]:99/b"


WRONG = (
    "?color=hunter2",
    "?sslmode=hunter2",
    "?connect_timeout=0",
    "?sslmode=disable&sslmode=allow",
    "?sslcert=%00",
    "?host=d",
)
WRONG += ("?sslkey=a", "?target_session_attrs=any", "?x=hunter2@b", "#hunter2")


@pytest.mark.parametrize("url", [*(f"postgresql://a:hunter2@b/c{one}" for one in WRONG), "mysql://a:hunter2@b/c",
    "postgresql://a:hunter2/x@b/c", "postgresql://a:hunter2?y@b/c", "postgresql://b/c", "postgresql://a:b:hunter2/c",
    "postgresql://a:hunter2@b/c?sslmode=disable", "postgresql://a:hunter2@localhost,10.0.0.1/c?sslmode=disable"])  # fmt: skip
def test_a_wrong_address_is_refused_and_shows_no_password(url: str) -> None:
    with pytest.raises(SetupError) as refused:
        Address.parse(url)
    assert "hunter2" not in repr(refused.value)
    assert "color" not in url or "'color'" in refused.value.message


def test_another_host_without_tls_is_refused(link: Callable[..., Link], postgres: PostgresServer) -> None:
    for more in ("", "?sslmode=allow", "?sslmode=prefer", "?sslmode=require", "?sslmode=verify-full"):
        with pytest.raises(SetupError, match="offers no TLS"):
            link(postgres, more, hosts=f"0.0.0.0:{postgres.port}")  # this host, but by no address of loopback
    for more in ("", "?sslmode=disable", "?sslmode=allow", "?sslmode=prefer"):
        link(postgres, more).close()
    with pytest.raises(SetupError, match="offers no TLS"):
        link(postgres, "?sslmode=require")


IS_TLS = [("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", ())]


def test_tls_is_verified_as_sslmode_says(
    link: Callable[..., Link], postgres: PostgresServer, tls: tuple[Path, Path]
) -> None:
    known, other = (f"sslrootcert={path}" for path in tls)
    named = f"localhost:{postgres.port}"  # which is not in the certificate
    for more, hosts in ((f"?{known}", ""), (f"?sslmode=verify-ca&{known}", named), ("?sslmode=require", named),
                        (f"?sslmode=require&{known}", named), ("?sslmode=prefer", "")):  # fmt: skip
        one = link(postgres, more, hosts=hosts)
        assert one.run(IS_TLS)[0].rows[0][0] is True
        assert len(one.run([("SELECT repeat($1, 3000000)", ("x",))])[0].rows[0][0]) == 3_000_000
        one.run([("SELECT $1", ("y" * 1000,))] * 3000)
    for more in ("?sslmode=disable", "?sslmode=allow"):
        assert link(postgres, more).run(IS_TLS)[0].rows[0][0] is False
    for more, hosts in (("", ""), (f"?{other}", ""), (f"?sslmode=verify-ca&{other}", ""), (f"?{known}", named),
                        (f"?sslmode=require&{other}", ""), ("?sslrootcert=/none", "")):  # fmt: skip
        with pytest.raises(SetupError):
            link(postgres, more, hosts=hosts)


def test_only_a_host_that_takes_writes_is_used(link: Callable[..., Link], postgres: PostgresServer) -> None:
    programs = find_programs()
    assert programs is not None
    with served(programs) as standby:
        standby.query(f"ALTER ROLE gateway PASSWORD '{postgres.password}'")
        standby.password = postgres.password
        standby.query("ALTER SYSTEM SET default_transaction_read_only = on")
        standby.query("SELECT pg_reload_conf()")
        until(lambda: standby.query("SHOW default_transaction_read_only") == "on")
        hosts = f"127.0.0.1:1,127.0.0.1:{standby.port},127.0.0.1:{postgres.port}"
        assert link(postgres, "?target_session_attrs=read-write", hosts=hosts).place.endswith(str(postgres.port))
        with pytest.raises(LinkLost, match="takes no writes") as lost:
            link(standby)
        assert lost.value.code == "25006"


def test_a_server_that_is_silent_or_gone_loses_the_link(link: Callable[..., Link], postgres: PostgresServer) -> None:
    one, idle, ended = link(postgres), link(postgres), link(postgres)
    with pytest.raises(LinkLost, match="no answer"):
        one.run([("SELECT pg_sleep(60)", ())], wait_seconds=0.1)
    with pytest.raises(LinkLost, match="closed"):
        one.run([("SELECT 1", ())])
    pid = ended.run([("SELECT pg_backend_pid()", ())])[0].rows[0][0]
    idle.run([("SELECT pg_terminate_backend($1::int, 9000)", (pid,))])
    with pytest.raises(LinkLost) as lost:
        ended.run([("SELECT 1", ())])
    assert lost.value.code == "57P01"
    postgres.kill()
    try:
        with pytest.raises(LinkLost):
            idle.run([("SELECT 1", ())])
        with pytest.raises(LinkLost):
            link(postgres)
    finally:
        postgres.start()
    assert link(postgres).run([("SELECT 1", ())])[0].rows[0][0] == 1


def test_names_become_numbers_but_not_in_text() -> None:
    sql = """SELECT ':a', ":b", c::text, :d, :e_1 -- :f
        /* :g */ WHERE 'it''s :h' = :d"""
    assert translate(sql) == (sql.replace(":d", "$1").replace(":e_1", "$2"), ("d", "e_1"))
