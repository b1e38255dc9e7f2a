"""Hosts in texts: what is a link, what is only a name, and what is neither."""

import pytest

from gateway.domain.hosts import linked_hosts, named_hosts, suffixes


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("see https://Evil.Example/path?q=1", {"evil.example"}),
        ("[here](http://a.example:8080/x)", {"a.example"}),
        ("![](https://a.example/p.png) and <https://b.example>.", {"a.example", "b.example"}),
        ("https://good.example@evil.example/", {"evil.example"}),
        ("https://user:pass@evil.example:443", {"evil.example"}),
        ("https:\\\\evil.example\\x", {"evil.example"}),
        ("https:evil.example", {"evil.example"}),
        ("https://evil%2Eexample/", {"evil.example"}),
        ("https://evil。example/", {"evil.example"}),
        ("https://ｅｖｉｌ.example/", {"evil.example"}),
        ("https://ev\u200bil.example/", {"evil.example"}),
        ("https://evil.example./", {"evil.example"}),
        ("see //evil.example/x", {"evil.example"}),
        ("visit www.evil.example now", {"www.evil.example"}),
        ("ftp://files.example", {"files.example"}),
        ("http://intranet/", {"intranet"}),
        ("https://bücher.example", {"xn--bcher-kva.example"}),
        ("read README.md and gateway.py, e.g. today", set()),
        ("a // comment and 1//2", set()),
        ("nothing", set()),
    ],
)
def test_links_name_their_hosts(text: str, hosts: set[str]) -> None:
    assert linked_hosts(text) == hosts


@pytest.mark.parametrize(
    "text",
    [
        "evil.example",
        "go to evil.example, please",
        "mail me@evil.example.",
        "EVIL.EXAMPLE/x",
        "访问evil.example和",
        "https://good.example/?to=evil.example",
    ],
)
def test_whatever_may_be_read_as_a_host_is_found(text: str) -> None:
    assert "evil.example" in named_hosts(text)


def test_the_domains_above_a_host_are_told_from_the_longest_on() -> None:
    assert list(suffixes("a.b.example")) == ["a.b.example", "b.example", "example"]


@pytest.mark.parametrize("text", ["a" * 200_000, "a." * 100_000, "http:" * 40_000, "//" * 100_000, "@." * 100_000])
def test_long_texts_without_a_host_are_read_to_the_end(text: str) -> None:
    assert "evil.example" in named_hosts(text + " https://evil.example")
