"""What is made after `keep_apart` lies in no pool with what was there, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = """
import gc, sys
sys.path.insert(0, sys.argv[1])
from gateway import common_pages

pieces = [b"x" * (number % 470) for number in range(50_000)]
del pieces[::3]
gc.collect()
if sys.argv[2] == "apart":
    common_pages.keep_apart()
    common_pages.keep_apart()  # a second time, as before another fork
pools = {id(piece) // 16_384 for piece in pieces}
made = [b"y" * (number % 470) for number in range(500, 10_000)]
print(sum(id(piece) // 16_384 in pools for piece in made), len(common_pages._filling))
"""


def run(how: str, **environment: str) -> tuple[int, int]:
    """Return how many of some new objects lie among the old ones, and how many fill holes."""
    command = [sys.executable, "-c", SCRIPT, str(ROOT), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    among, filling = map(int, done.stdout.split())
    return among, filling


@pytest.mark.skipif(sys.implementation.name != "cpython" or sys.maxsize < 1 << 32, reason="of pools of 16 KB")
def test_what_is_made_later_lies_apart_from_what_was_there() -> None:
    assert run("among")[0] > 5_000
    among, filling = run("apart")
    assert among < 50
    assert filling > 10_000


def test_where_there_are_no_pools_nothing_is_held() -> None:
    assert run("apart", PYTHONMALLOC="malloc")[1] == 0
