"""Records made of others: what they share, what they are told, and what neither says."""

from dataclasses import dataclass

import pytest

from gateway.records import project


@dataclass(frozen=True, slots=True)
class Account:
    id: str
    secret: str
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class AccountView:
    id: str
    owner: str | None
    status: str


def test_a_view_has_what_it_names_and_no_more() -> None:
    assert project(AccountView, Account("a", "hidden", "me"), status="open") == AccountView("a", "me", "open")


def test_what_is_told_stands_before_what_the_record_has() -> None:
    assert project(AccountView, Account("a", "hidden"), status="open", owner="told") == AccountView("a", "told", "open")


def test_a_field_that_neither_knows_is_no_silent_default() -> None:
    with pytest.raises(AttributeError, match="status"):
        project(AccountView, Account("a", "hidden"))
    with pytest.raises(TypeError, match="colour"):
        project(AccountView, Account("a", "hidden"), status="open", colour="red")
