"""Pages that processes have in common after a fork: have each of them write to few.

Theory of operation. A page is copied when somebody writes to it. Python keeps small objects of about one size together
in pools of 16 KB, and makes a new one where the last one went: what a worker makes would lie between what all have in
common, and a page would be copied for a few bytes of it. So before the fork these holes are filled with what nobody
uses, for some milliseconds and a megabyte that is there once; a worker then begins pools of its own.

A lookup on a type is remembered with a reference to its name. What was looked up while everything was loaded would be
forgotten name by name in each worker, and each of these names has its count of references in another page.
"""

import sys
from functools import partial

_POOL_BYTES, _HEAD_BYTES = 16_384, 48
_STEP_BYTES, _LARGEST_BYTES = 16, 512
_BYTES_HEAD = sys.getsizeof(b"")
_MOST_BYTES = 4 << 20
# Where so many do not fill a pool by themselves, memory is not kept in pools like these.
_TRIED_BYTES = 256 << 10

_filling: list[object] = []


def keep_apart() -> None:
    """Have what is made from now on lie apart from what is there. To be called before a fork, after a collection."""
    forget: object = getattr(sys, "_clear_type_cache", None)
    if callable(forget):
        forget()
    _filling.clear()
    if _fill(_STEP_BYTES, _TRIED_BYTES):
        for size in range(2 * _STEP_BYTES, _LARGEST_BYTES + 1, _STEP_BYTES):
            _fill(size, _MOST_BYTES)
    else:
        _filling.clear()


def _fill(size: int, most_bytes: int) -> bool:
    """Fill the pools of one size, and say whether a new one was begun, which is left empty again."""
    room = (_POOL_BYTES - _HEAD_BYTES) // size
    # Of the smallest, Python keeps no spare ones by itself.
    make = {16: object, 32: complex}.get(size) or partial(bytes, size - _BYTES_HEAD)
    for _ in range(0, most_bytes, 2 * room * size):
        made: list[object] = [None] * (2 * room)  # a list that grows would take and leave blocks of its own
        for place in range(2 * room):
            made[place] = make()
        pool, begin = 0, 0
        for place, one in enumerate(made):
            if id(one) // _POOL_BYTES != pool:
                pool, begin = id(one) // _POOL_BYTES, place
            elif place - begin == room - 1:
                _filling.extend(made[:begin])
                return True
        _filling.extend(made)
    return False
