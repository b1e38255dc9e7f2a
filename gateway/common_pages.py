"""Pages that processes have in common after a fork: have each of them write to few.

Theory of operation. A page is copied when somebody writes to it. Python keeps small objects of about one size together
in pools of 16 KB, and makes a new one where the last one went: what a worker makes would lie between what all have in
common, and a page would be copied for a few bytes of it. So before the fork these holes are filled with what nobody
uses, for some milliseconds and a megabyte that is there once; a worker then begins pools of its own. The same is done
with the holes of the heap, where the C library puts what is larger.

A lookup on a type is remembered with a reference to its name. What was looked up while everything was loaded would be
forgotten name by name in each worker, and each of these names has its count of references in another page.

Code is written to as it runs: it counts until it is worth to be specialised, and remembers what it met. What a request
runs lies scattered among ten times as much that it does not. So it is noted what runs, and laid together as copies.
"""

import gc
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType, FrameType, FunctionType

from gateway import libc

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
    mix()
    if _fill(_STEP_BYTES, _TRIED_BYTES):
        for size in range(2 * _STEP_BYTES, _LARGEST_BYTES + 1, _STEP_BYTES):
            _fill(size, _MOST_BYTES)
    else:
        _filling.clear()
    libc.fill_holes()


def mix() -> None:
    """Give back what fills the holes. Before much is made that stays, else it takes as much again each time."""
    _filling.clear()
    libc.empty_holes()


@contextmanager
def noted() -> Iterator[dict[int, CodeType]]:
    """Note what code runs meanwhile, here and in threads that begin meanwhile, by its identity."""
    ran: dict[int, CodeType] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            ran[id(frame.f_code)] = frame.f_code

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield ran
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def lay_together(codes: Iterable[CodeType]) -> None:
    """Have all functions of these codes run copies that lie side by side. To be called after `keep_apart`.

    Nobody may run them meanwhile. What is frozen is looked at too, and is not frozen any more.
    """
    wanted = {id(code): code for code in codes}
    copies: dict[int, CodeType] = {}

    def copied(code: CodeType) -> CodeType:
        made = copies.get(id(code))
        if made is None:
            inner = tuple(copied(one) if id(one) in wanted else one for one in code.co_consts)
            name, qualname = _apart(code.co_name), _apart(code.co_qualname)
            made = copies[id(code)] = code.replace(co_consts=inner, co_name=name, co_qualname=qualname)
        return made

    for code in wanted.values():
        copied(code)
    gc.unfreeze()
    for one in gc.get_objects():
        if type(one) is FunctionType and id(one.__code__) in copies:
            one.__code__ = code = copies[id(one.__code__)]
            if (one.__name__, one.__qualname__) == (code.co_name, code.co_qualname):
                one.__name__, one.__qualname__ = code.co_name, code.co_qualname


def _apart(name: str) -> str:
    """Return a name as a string of its own, which lies where it is made."""
    return name[:1] + name[1:]


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
