"""A record made of another that has fields of the same names: what is shown of a thing, or is to become of it."""

from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, cast

T = TypeVar("T")


def project(cls: type[T], record: object, **others: object) -> T:
    """Return a `cls` with what `record` has in its fields of the same names. others: values of all other fields.

    What `cls` has no field for is left out, so a view shows what it names and no more.
    """
    same = {name: getattr(record, name) for name in _names(cast(Any, cls)) if name not in others}
    made: T = cast(Any, cls)(**same, **others)
    return made


@cache
def _names(cls: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(cls))
