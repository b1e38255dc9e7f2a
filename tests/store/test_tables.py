"""Every record that a repository writes is the record that it reads back, whatever the types of its fields."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from seeding import seed

from gateway.domain.access_list import AccessEntry
from gateway.domain.budgets import Budget
from gateway.domain.keys import KeyRecord
from gateway.domain.policies import PolicyRecord
from gateway.domain.providers import Provider
from gateway.domain.risk_acceptances import RiskAcceptance
from gateway.domain.rule_overrides import RuleOverride
from gateway.domain.users import User
from gateway.store.store import Store

Write = Callable[[Store, Any, Any], object]
Read = Callable[[Store, Any, Any], object]

# How each record is written and read. Fields that are no column of their table keep the values of the second entry.
ROWS: Mapping[type, tuple[Write, Read, Mapping[str, object]]] = {
    AccessEntry: (lambda s, tx, one: s.access_list.insert(tx, one), lambda s, tx, one: s.access_list.by_id(tx, one.id), {}),
    Budget: (lambda s, tx, one: s.budgets.insert(tx, one), lambda s, tx, one: s.budgets.by_id(tx, one.id), {"lineage": None}),
    KeyRecord: (lambda s, tx, one: s.keys.insert(tx, one), lambda s, tx, one: s.keys.by_id(tx, one.id), {}),
    PolicyRecord: (lambda s, tx, one: s.policies.insert(tx, one), lambda s, tx, one: s.policies.find(tx, one.id), {}),
    Provider: (lambda s, tx, one: s.providers.insert(tx, one), lambda s, tx, one: s.providers.find(tx, one.id), {"origin": "record"}),
    RiskAcceptance: (lambda s, tx, one: s.risk_acceptances.insert(tx, one), lambda s, tx, one: s.risk_acceptances.by_id(tx, one.id), {}),
    RuleOverride: (lambda s, tx, one: s.rule_overrides.keep(tx, one), lambda s, tx, one: s.rule_overrides.find(tx, one.rule), {}),
    User: (lambda s, tx, one: s.users.insert(tx, one), lambda s, tx, one: s.users.by_id(tx, one.id), {}),
}  # fmt: skip


def sample(hint: Any, name: str, default: object = MISSING) -> Any:
    """Return a value of a type that is not the default."""
    origin, options = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return sample(next(one for one in options if one is not NoneType), name, default)
    if origin is Literal:
        return next(one for one in options if one != default)
    if origin is tuple:
        return (sample(options[0], name), sample(options[0], name + "ß"))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"ü": sample(options[1], name), "": sample(options[1], name)}
    if is_dataclass(hint):
        return full(hint)
    if hint is bool:
        return not default
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(one for one in reversed([*hint]) if one != default)
    return {str: f"{name} 'ü'", int: 2**40 + len(name), float: 0.25, object: [name, None]}[hint]


def full(cls: Any, **given: object) -> Any:
    """Return a record of which no field has its default value."""
    hints = get_type_hints(cls)
    made = {one.name: sample(hints[one.name], one.name, one.default) for one in fields(cls)}
    return cls(**made | given)


@pytest.mark.parametrize("cls", ROWS, ids=lambda cls: cls.__name__)
async def test_a_record_reads_back_as_it_was_written(store: Store, cls: type) -> None:
    write, read, given = ROWS[cls]
    record = full(cls, **given)
    for one in fields(cls):
        assert one.name in given or getattr(record, one.name) not in (None, one.default)

    await seed(store, lambda tx: write(store, tx, record))

    found = await store.db.read(lambda tx: read(store, tx, record))
    assert found == record
    for one in fields(cls):
        assert type(getattr(found, one.name)) is type(getattr(record, one.name)), one.name
