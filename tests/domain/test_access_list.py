"""The decision over the entries of the access list, and the forms of their values."""

import re
from ipaddress import IPv4Address
from typing import Any

import pytest

from gateway.domain.access_list import (
    ADDRESS_PATTERN,
    DOMAIN_PATTERN,
    NETWORK_PATTERN,
    AccessEntry,
    EntryType,
    ListName,
    Rules,
    Subject,
    read_value,
)
from gateway.errors import InvalidRequest

NOW = 1_700_000_000_000


def entry(list_name: str, entry_type: str, value: str, **more: Any) -> AccessEntry:
    kind = EntryType(entry_type)
    return AccessEntry(
        id=f"acl_{list_name}_{value}",
        list_name=ListName(list_name),
        entry_type=kind,
        value=read_value(kind, value),
        created_at=NOW,
        created_by="ann",
        **more,
    )


def passes(rules: Rules, subject: Subject, value: str, key_id: str | None = "key_1") -> bool:
    return rules.decide(subject, value, key_id).is_allowed


def takes(entry_type: EntryType, text: str) -> bool:
    try:
        read_value(entry_type, text)
    except InvalidRequest:
        return False
    return True


def test_without_an_entry_everything_passes() -> None:
    rules = Rules([], NOW)
    assert not rules.has
    assert all(passes(rules, subject, "anything") for subject in Subject)


def test_deny_comes_first() -> None:
    rules = Rules([entry("allow", "CIDR", "192.0.2.0/24"), entry("deny", "IP", "192.0.2.7")], NOW)
    decision = rules.decide(Subject.ADDRESS, "192.0.2.7", None)
    assert (decision.is_allowed, decision.is_listed) == (False, True)
    assert decision.entry is not None
    assert decision.entry.list_name is ListName.DENY
    assert passes(rules, Subject.ADDRESS, "192.0.2.8")


def test_where_an_allow_entry_of_the_kind_exists_one_must_match() -> None:
    rules = Rules([entry("allow", "MODEL", "gpt-4*"), entry("allow", "MODEL", "local")], NOW)
    assert passes(rules, Subject.MODEL, "gpt-4.1")
    assert passes(rules, Subject.MODEL, "LOCAL")
    refused = rules.decide(Subject.MODEL, "gpt-3", "key_1")
    assert (refused.is_allowed, refused.is_listed) == (False, False)
    assert passes(rules, Subject.TOOL, "gpt-3")


def test_an_address_may_be_on_the_list_as_itself_or_by_its_network() -> None:
    rules = Rules([entry("allow", "IP", "192.0.2.7"), entry("allow", "CIDR", "2001:db8::/32")], NOW)
    assert passes(rules, Subject.ADDRESS, "192.0.2.7")
    assert passes(rules, Subject.ADDRESS, "::ffff:192.0.2.7")
    assert passes(rules, Subject.ADDRESS, "2001:db8::1%eth0")
    assert not passes(rules, Subject.ADDRESS, "192.0.2.8")
    assert not passes(rules, Subject.ADDRESS, "")
    assert not passes(rules, Subject.ADDRESS, "no address")


def test_the_widest_and_the_narrowest_networks_match() -> None:
    everybody = Rules([entry("deny", "CIDR", "0.0.0.0/0"), entry("deny", "CIDR", "::/0")], NOW)
    assert not passes(everybody, Subject.ADDRESS, "198.51.100.1")
    assert not passes(everybody, Subject.ADDRESS, "2001:db8::1")
    one = Rules([entry("deny", "CIDR", "192.0.2.7/32")], NOW)
    assert not passes(one, Subject.ADDRESS, "192.0.2.7")
    assert passes(one, Subject.ADDRESS, "192.0.2.6")


def test_an_entry_counts_for_the_key_it_is_about() -> None:
    rules = Rules([entry("deny", "TOOL", "shell", scope="key_1")], NOW)
    assert not passes(rules, Subject.TOOL, "shell", "key_1")
    assert passes(rules, Subject.TOOL, "shell", "key_2")
    assert passes(rules, Subject.TOOL, "shell", None)


def test_an_allow_entry_for_one_key_says_nothing_of_others() -> None:
    rules = Rules([entry("allow", "MODEL", "small", scope="key_1")], NOW)
    assert not passes(rules, Subject.MODEL, "large", "key_1")
    assert passes(rules, Subject.MODEL, "large", "key_2")


def test_an_entry_stops_to_count_when_it_expires() -> None:
    entries = [entry("deny", "AGENT", "bot", expires_at=NOW + 1000), entry("deny", "AGENT", "old")]
    rules = Rules(entries, NOW)
    assert not passes(rules, Subject.AGENT, "bot")
    assert rules.until_at == NOW + 1000
    later = Rules(entries, rules.until_at)
    assert passes(later, Subject.AGENT, "bot")
    assert not passes(later, Subject.AGENT, "old")


def test_a_domain_is_on_the_list_with_all_below_it() -> None:
    rules = Rules([entry("deny", "DOMAIN", "evil.example"), entry("deny", "DOMAIN", "*.cdn.example")], NOW)
    assert not passes(rules, Subject.DOMAIN, "evil.example")
    assert not passes(rules, Subject.DOMAIN, "a.b.evil.example")
    assert passes(rules, Subject.DOMAIN, "notevil.example")
    assert not passes(rules, Subject.DOMAIN, "x.cdn.example")
    assert passes(rules, Subject.DOMAIN, "cdn.example")


@pytest.mark.parametrize(
    ("entry_type", "text", "value"),
    [
        ("IP", " 192.0.2.7 ", "192.0.2.7"),
        ("IP", "2001:DB8:0::7", "2001:db8::7"),
        ("IP", "::ffff:192.0.2.7", "192.0.2.7"),
        ("CIDR", "192.0.2.0/24", "192.0.2.0/24"),
        ("CIDR", "2001:db8::/32", "2001:db8::/32"),
        ("MODEL", "GPT-4*", "gpt-4*"),
        ("DOMAIN", "Evil.Example.", "evil.example"),
        ("DOMAIN", "*.Bücher.example", "*.xn--bcher-kva.example"),
    ],
)
def test_a_value_has_one_form(entry_type: str, text: str, value: str) -> None:
    assert read_value(EntryType(entry_type), text) == value


@pytest.mark.parametrize(
    ("entry_type", "text"),
    [
        ("IP", "192.0.2.0/24"),
        ("IP", "192.0.2"),
        ("IP", "localhost"),
        ("CIDR", "192.0.2.7/24"),
        ("CIDR", "192.0.2.0/33"),
        ("CIDR", "any"),
        ("DOMAIN", "https://evil.example/"),
        ("DOMAIN", "evil"),
        ("DOMAIN", "*"),
        ("DOMAIN", "a..example"),
        ("MODEL", ""),
        ("MODEL", "  "),
        ("TOOL", "a\nb"),
        ("AGENT", "x" * 254),
    ],
)
def test_what_is_no_value_is_refused(entry_type: str, text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_value(EntryType(entry_type), text)
    assert caught.value.param == "value"


def test_the_document_promises_all_networks_of_ipv4_and_no_other_text_of_that_form() -> None:
    pattern = re.compile(NETWORK_PATTERN)
    for prefix in range(34):
        for number in (0, 1, 0x0A000000, 0xC0000200, 0xC0A81E40, 0xFFFFFFFF, *(1 << bit for bit in range(32))):
            for masked in (number, number & (2**32 - 1 << 32 - min(prefix, 32))):
                text = f"{IPv4Address(masked & 0xFFFFFFFF)}/{prefix}"
                assert (pattern.search(text) is not None) is takes(EntryType.CIDR, text), text


@pytest.mark.parametrize(
    ("entry_type", "pattern", "texts"),
    [
        (EntryType.IP, ADDRESS_PATTERN, ["192.0.2.7", "::", "::1", "1::", "2001:db8::7", "1:2:3:4:5:6:7:8", "1::3:4"]),
        (EntryType.CIDR, NETWORK_PATTERN, ["192.0.2.7", "::/0", "2001:db8::/32", "2001:db8:1200::/40", "1:2::/128"]),
        (EntryType.DOMAIN, DOMAIN_PATTERN, ["example.com", "*.Example.com", "localhost", "a_b.x-y.z0"]),
    ],
)
def test_what_the_document_promises_is_taken(entry_type: EntryType, pattern: str, texts: list[str]) -> None:
    for text in texts:
        assert re.search(pattern, text) and takes(entry_type, text), text


@pytest.mark.parametrize(
    ("entry_type", "pattern", "texts"),
    [
        (EntryType.IP, ADDRESS_PATTERN, ["192.0.2", "192.0.2.256", "01.2.3.4", ":::", "1:2:3:4:5:6:7:8:9", "1::2::3"]),
        (EntryType.CIDR, NETWORK_PATTERN, ["192.0.2.7/24", "10.0.0.0/33", "2001:db8::1/32", "1:2:3:4:5:6:7::8/3"]),
        (EntryType.DOMAIN, DOMAIN_PATTERN, ["com", "*.com", "a..b", "-a.b", "a*.b", "a b.c"]),
    ],
)
def test_what_is_refused_is_not_promised(entry_type: EntryType, pattern: str, texts: list[str]) -> None:
    for text in texts:
        assert not re.search(pattern, text) and not takes(entry_type, text), text
