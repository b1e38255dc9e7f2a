"""Records that are made for every request: frozen for the type checker, and cheap to make. Knows no record.

`@dataclass(frozen=True)` sets each field through `object.__setattr__`, four times as slow as an assignment. Some thirty
records are made for one chat. `@record` promises the same and lets the type checker alone keep it; everything else
stays as dataclasses are. For a record that is not made for every request, use the dataclass.
"""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make a record of `cls`: slots, equality and hash by its fields; nobody may change one."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def named_record(cls: type[T]) -> type[T]:
    """Make a record of `cls` whose fields are given by name alone."""
    return dataclass(slots=True, unsafe_hash=True, kw_only=True)(cls)
