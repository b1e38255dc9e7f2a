"""Records made of others. Knows no record."""

from dataclasses import fields
from typing import Any, TypeVar, cast

T = TypeVar("T")


def project(cls: type[T], record: object, **others: object) -> T:
    """Return a `cls` with the values of `record` in its fields of the same names. others: values of all other fields.

    A field that `cls` does not have is left out, so a view shows what it names and no more.
    """
    names = (one.name for one in fields(cast(Any, cls)) if one.name not in others)
    return cast(T, cast(Any, cls)(**{name: getattr(record, name) for name in names}, **others))
