"""Settings from flags, environment and file: what is refused, and with which words."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway import settings
from gateway.bundle import NativeReport
from gateway.cli import main as cli
from gateway.errors import SetupError
from gateway.spelling import distance, nearest

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_DATA_DIR", ":memory:")


def run(*arguments: str) -> int:
    try:
        return cli.run(cli.read(arguments), NativeReport("python", None, ()))
    except SystemExit as end:
        return int(end.code or 0)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("GATEWAY_UPSTREM_URL", "GATEWAY_UPSTREAM_URL"),
        ("GATEWAY_SHIELD_MOD", "GATEWAY_SHIELD_MODE"),
        ("GATEWAY_SHEILD_MODE", "GATEWAY_SHIELD_MODE"),
        ("GATEWAY_CONFG", "GATEWAY_CONFIG"),
        ("MCP_ENABLE", "MCP_ENABLED"),
        ("MCP_APIKEY", "MCP_API_KEY"),
        ("RBAC_ENABLE", "RBAC_ENABLED"),
    ],
)
@pytest.mark.parametrize("command", [("serve", "--show-settings"), ("keys", "list"), ("mcp",), ("doctor",), ("scan",)])
def test_a_misspelt_variable_starts_nothing_and_the_right_one_is_named(
    name: str, meant: str, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv(name, "1")
    assert run(*command) == 2
    said = capsys.readouterr()
    assert (said.out, said.err) == (
        "", f"gateway: {name} is not a setting. Did you mean {meant}? Correct or unset it.\n"
    )  # fmt: skip


KUBERNETES = {
    "GATEWAY_SERVICE_HOST": "10.0.0.1",
    "GATEWAY_SERVICE_PORT": "5001",
    "GATEWAY_SERVICE_PORT_HTTP": "5001",
    "GATEWAY_PORT_5001_TCP": "tcp://10.0.0.1:5001",
    "GATEWAY_PORT_5001_TCP_ADDR": "10.0.0.1",
    "GATEWAY_PORT_5001_TCP_PORT": "5001",
    "GATEWAY_PORT_5001_TCP_PROTO": "tcp",
    "MCP_SERVICE_HOST": "10.0.0.2",
    "MCP_PORT_5002_TCP": "tcp://10.0.0.2:5002",
}


def test_variables_of_others_are_named_in_one_warning() -> None:
    loaded = settings.load({}, KUBERNETES | {"RBAC_OF_ANOTHER": "1", "GATEWAY_MADE_UP": ""})
    assert loaded.warnings == (f"not settings of this version: {', '.join(sorted([*KUBERNETES, 'GATEWAY_MADE_UP']))}",)
    assert settings.load({}, {"GATEWAY_PROVIDER_OPENAI": "x", "GATEWAY_CONFIG": "", "PATH": "/"}).warnings == ()


@pytest.mark.parametrize("name", ["GATEWAY_PROVIDER_KEY_DIR", "GATEWAY_PROVIDER_KEYENV"])
def test_a_misspelt_setting_is_no_key_of_a_provider_unless_it_is_listed_whole(name: str) -> None:
    with pytest.raises(SetupError, match="Did you mean GATEWAY_PROVIDER_KEY_"):
        settings.load({}, {name: "x"})
    assert settings.load({}, {name: "x", "GATEWAY_PROVIDER_KEY_ENV": f"GATEWAY_PROVIDER_*,{name}"}).warnings == ()


@pytest.mark.parametrize("name", ["GATEWAY_PORT", "MCP_PORT"])
def test_a_port_that_kubernetes_sets_is_told_with_the_remedy(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv(name, "tcp://10.0.0.1:5001")
    assert run("serve") == 2
    said = capsys.readouterr().err
    assert said.startswith(f"gateway: {name} is tcp://10.0.0.1:5001, which Kubernetes sets")
    assert "enableServiceLinks: false" in said
    flags: Mapping[str, str] = {name.lower().removeprefix("gateway_"): "7000"}
    assert getattr(settings.load(flags), next(iter(flags))) == 7000


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("mysql://ann:s3cret@db", "database_url must begin with postgresql://"),
        ("sqlite:///s3cret.db", "database_url must begin with postgresql://"),
        ("postgres://db", "The address of the database names no user"),
        (
            "postgresql://ann:s3cret@db/gateway?sslmod=x",
            "The address of the database has an unknown parameter, 'sslmod'",
        ),
        ("postgresql://ann:s3cret@192.0.2.1/g?sslmode=disable", "The address of the database has sslmode=disable, but"),
    ],
)
@pytest.mark.parametrize("command", [("keys", "list"), ("trust-audit",)])
def test_a_database_that_cannot_be_used_is_refused_and_its_address_is_not_shown(
    url: str, told: str, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("GATEWAY_DATABASE_URL", url)
    assert run(*command, "--data-dir", str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"gateway: {told}")
    assert len(said.splitlines()) == 1
    assert "s3cret" not in said


def test_a_shared_database_needs_a_data_folder_and_its_address_is_no_flag(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('database_url = "postgresql://ann@db/gateway"\n')
    assert run("serve", "--config", str(file), "--data-dir", ":memory:") == 2
    assert "database_url need a data folder" in capsys.readouterr().err
    assert run("serve", "--database-url", "postgresql://ann@db/gateway") == 2
    assert "unrecognized arguments" in capsys.readouterr().err
    for url in ("", "sqlite", "sqlite://"):
        assert settings.load({"database_url": url}).database_url == url


def test_a_misspelt_flag_command_or_key_of_a_file_is_told_with_the_right_one(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('upstrem_url = "x"\n')
    for arguments, meant in (
        (["serve", "--upstrem-url", "x"], "--upstream-url"),
        (["serve", "--upstrem-url=x"], "--upstream-url"),
        (["serv"], "serve"),
        (["keys", "lst"], "list"),
        (["serve", "--config", str(file)], "upstream_url"),
    ):
        assert run(*arguments) == 2
        assert f"Did you mean {meant}?" in capsys.readouterr().err
    assert run("serve", "--quite-another") == 2
    assert "Did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [("", "", 0), ("a", "", 1), ("abc", "acb", 1), ("abc", "abc", 0), ("kitten", "sitting", 3), ("ab", "ba", 1)],
)
def test_letters_between_two_words(one: str, other: str, apart: int) -> None:
    assert distance(one, other) == distance(other, one) == apart
    assert nearest(one, [other]) == (other if apart <= 2 else None)


def test_a_file_that_is_missing_was_not_scanned(tmp_path: Path, capsys: Capture) -> None:
    clean = tmp_path / "clean.txt"
    clean.write_text("Good morning.")
    assert run("scan", str(tmp_path / "missing")) == 2
    assert capsys.readouterr().out == "0 scanned: 0 BLOCK, 0 REVIEW, 0 ALLOW\n"
    assert run("scan", str(tmp_path / "missing"), str(clean)) == 2
    assert capsys.readouterr().out == "1 scanned: 0 BLOCK, 0 REVIEW, 1 ALLOW\n"


def test_a_key_is_shown_in_words(tmp_path: Path, capsys: Capture) -> None:
    folder = ["--data-dir", str(tmp_path / "data")]
    assert run("keys", "create", "--name", "a", "--scopes", "shield:scan,chat:completions", *folder) == 0
    key_id = capsys.readouterr().err.split()[0]
    assert run("keys", "show", key_id, *folder) == 0
    said = capsys.readouterr().out
    assert "\nscopes: chat:completions, shield:scan\n" in said or "\nscopes: shield:scan, chat:completions\n" in said
    assert "None" not in said and "[" not in said
