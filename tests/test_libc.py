"""How memory is kept, in a process of its own."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from gateway import libc

def held_kb():
    return next(int(line.split()[1]) for line in open("/proc/self/smaps_rollup") if line.startswith("Anonymous"))

large = bytes(8 << 20)
del large  # from now on glibc puts pieces of this size among the small ones
libc.keep_little()
before = held_kb()
pieces = [b"x" * (200_000 if number % 2 else 2_000) for number in range(200)]
del pieces[1::2]
print(held_kb() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it is about the C library of Linux")
def test_what_was_large_for_a_moment_leaves_nothing_among_what_stays() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(ROOT)], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 2_000  # of the 20 MB that were


HOLES = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from gateway import libc

libc.keep_together()
malloc, free = ctypes.CDLL(None).malloc, ctypes.CDLL(None).free
malloc.restype, malloc.argtypes, free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
places = [malloc(600 + number % 3_000) for number in range(4_000)]
for place in places[::2]:
    free(place)
last = max(places)
if sys.argv[2] == "fill":
    libc.fill_holes()
elif sys.argv[2] == "empty":
    libc.fill_holes()
    libc.empty_holes()
print(sum(malloc(600 + number % 3_000) < last for number in range(1_500)))
"""


@pytest.mark.skipif(os.name == "nt" or not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="it is about glibc 2.33")
def test_where_holes_are_filled_nothing_is_put_into_them() -> None:
    def among(how: str) -> int:
        command = [sys.executable, "-c", HOLES, str(ROOT), how]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    assert among("leave") > 1_000
    assert among("fill") < 30
    assert among("empty") > 1_000
