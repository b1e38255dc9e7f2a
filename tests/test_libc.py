"""How memory is kept, in a process of its own."""

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
