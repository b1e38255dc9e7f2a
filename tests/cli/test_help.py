"""What a person finds at the prompt: help with groups and defaults, near names, values as people write them."""

import re
import typing
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from running import Done, command

from gateway import settings
from gateway.cli import main

Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a command in the folder of the test."""
    return partial(command, folder=tmp_path, GATEWAY_DATA_DIR=str(tmp_path / "data"))


def words(text: str) -> str:
    """Return a help text as one line, as it is without a terminal's width."""
    return re.sub(r"-\s+(?=\w)", "-", " ".join(text.split()))


def test_the_help_of_serve_has_groups_choices_and_defaults(run: Run) -> None:
    done = run("serve", "--help")
    groups = re.findall(r"^([A-Z].*):$", done.stdout, re.MULTILINE)
    assert groups == ["Network and processes", "Data and log", "Models", "Shield", "Limits", "MCP over HTTP"]
    text = words(done.stdout.partition("\nexample: ")[0])
    for row in settings.rows():
        entry = text.partition(f" {settings.flag(row)} ")[2].partition(f"[{settings.variable(row)}]")[0]
        if row.metadata["secret"] or row.name == "data_dir":
            assert f"[{settings.variable(row)}]" not in text
            continue
        assert entry, row.name
        if typing.get_origin(row.type) is typing.Literal:
            assert entry.startswith("|".join(typing.get_args(row.type)) + " ")
        if isinstance(row.default, bool):
            assert entry.startswith("true|false ")
        if row.default in (None, ()):
            assert "Default:" not in entry
    assert "Default: 5001. [GATEWAY_PORT]" in text
    assert "Default: false. [RBAC_ENABLED]" in text
    assert "block|observe Whether a BLOCK verdict is enforced or only recorded. Default: block." in text


def test_every_group_of_commands_says_what_it_is_about(run: Run) -> None:
    top = words(run("--help").stdout)
    nouns = {one.name.split()[0] for one in main.commands() if " " in one.name}
    assert {"traffic", "agents", "posture", "settings", "outputs"} <= nouns
    for noun in nouns:
        about = run(noun, "--help").stdout.split("\n\n")[1]
        assert about.endswith(".") and f"{noun} {words(about)}" in top


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (("serv",), "serve"),
        (("serve", "--prot", "1"), "--port"),
        (("key", "list"), "keys"),
        (("keys", "lst"), "list"),
        (("keys", "list", "--jsn"), "--json"),
        (("policies", "remove", "lba"), "lab"),
        (("users", "disable", "bbo"), "bob"),
        (("providers", "show", "opneai"), "openai"),
        (("keys", "create", "--name", "x", "--scopes", "shield:scan", "--policy", "lab2"), "lab"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest(run: Run, typed: tuple[str, ...], meant: str) -> None:
    run("policies", "create", "--name", "lab")
    run("users", "create", "--username", "bob", "--role", "viewer")
    run("providers", "add", "--name", "openai", "--base-url", "https://api.example.com/v1")
    done = run(*typed)
    assert done.returncode == 2
    assert f"Did you mean {meant}?" in done.stderr and len(done.stderr.splitlines()) == 1
    assert "Did you mean" not in run("policies", "remove", "something-else").stderr


def test_values_are_printed_as_people_write_them(run: Run) -> None:
    run("keys", "create", "--name", "ci", "--scopes", "shield:scan,alerts:read", "--models", "gpt-*,echo")
    run(
        *("providers", "add", "--name", "lab", "--base-url", "https://lab.example/v1"),
        *("--prices", '{"gpt-*": {"input": 2.5, "output": 10}}', "--models", "gpt-*"),
    )
    (key,) = [line.split()[0] for line in run("keys", "list").stdout.splitlines()[1:]]
    shown = run("keys", "show", key).stdout
    assert {"scopes: shield:scan, alerts:read", "models: gpt-*, echo", "policy: -"} <= set(shown.splitlines())
    provider = run("providers", "show", "lab").stdout
    assert {
        "enabled: true",
        "allow_private: false",
        'prices: gpt-*={"input": 2.5, "output": 10.0, "max_reply_tokens": null}',
    } <= set(provider.splitlines())
    every = run("serve", "--show-settings", "--rules-extra", "one.json,two").stdout
    assert {"tls_cert = -  (default)", "rules_extra = one.json,two  (flag)", "rbac_enabled = false  (default)"} <= set(
        every.splitlines()
    )
    for text in (shown, provider, every):
        assert not re.search(r"\bNone\b|\bTrue\b|\bFalse\b|\['|\('", text), text


def test_a_file_that_is_missing_was_not_scanned(run: Run) -> None:
    done = run("scan", "missing.txt")
    assert (done.returncode, done.stdout) == (2, "0 scanned: 0 BLOCK, 0 REVIEW, 0 ALLOW\n")
