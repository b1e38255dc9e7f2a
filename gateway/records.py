"""Records that are made for every request, and records made of others. Knows no record.

`@dataclass(frozen=True)` sets each field through `object.__setattr__`, four times as slow as an assignment. Some thirty
records are made for one chat. `@record` promises the same and lets the type checker alone keep it; everything else
stays as dataclasses are. For a record that is not made for every request, use the dataclass.
"""

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, cast, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make a record of `cls`: slots, equality and hash by its fields; nobody may change one."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def named_record(cls: type[T]) -> type[T]:
    """Make a record of `cls` whose fields are given by name alone."""
    return dataclass(slots=True, unsafe_hash=True, kw_only=True)(cls)


def project(cls: type[T], record: object, **others: object) -> T:
    """Return a `cls` with the values of `record` in its fields of the same names. others: values of all other fields.

    A field that `cls` does not have is left out, so a view shows what it names and no more.
    """
    names = (one.name for one in fields(cast(Any, cls)) if one.name not in others)
    return cast(T, cast(Any, cls)(**{name: getattr(record, name) for name in names}, **others))
