"""What anyio asks of `typing_extensions`, whose place it takes in the archive.

The project of that name is four thousand lines, which every start would load for four names, most of them for type
checkers alone. Whatever else is asked for is asked of `typing`.
"""

import functools
import sys
import typing
import warnings

if sys.version_info >= (3, 13):
    from typing import TypeVar
    from warnings import deprecated
else:

    def TypeVar(name, *constraints, default=None, **how):
        """Make a type variable. `default` is for type checkers, which do not read this file."""
        return typing.TypeVar(name, *constraints, **how)

    def deprecated(message):
        """Have each call of what is decorated warn with `message`."""

        def mark(function):
            @functools.wraps(function)
            def warn_and_call(*positional, **named):
                warnings.warn(message, DeprecationWarning, stacklevel=2)
                return function(*positional, **named)

            return warn_and_call

        return mark


if sys.version_info >= (3, 12):
    from typing import override
else:

    def override(method):
        """Mark `method` as one that stands in the place of an inherited one."""
        method.__override__ = True
        return method


class sentinel:
    """One object that nothing else is equal to, known by its name."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


def __getattr__(name):
    return getattr(typing, name)


__all__ = ("TypeVar", "deprecated", "override", "sentinel")
