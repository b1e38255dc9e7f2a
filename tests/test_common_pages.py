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


LAID = """
import sys
sys.path.insert(0, sys.argv[1])
from gateway import common_pages

fillers, functions = [], []
for number in range(400):
    names = {}
    text = f"def made{number}(x):\\n    def inner(y):\\n        return x + y + {number}\\n    return inner(1), [z * x for z in (1, 2)]"
    exec(text, names)
    functions.append(names[f"made{number}"])
    fillers += [bytes(size) for size in range(100, 480, 16) for _ in range(9)]
functions[8].__name__ = "renamed"
expected = [function(3) for function in functions]
names = [(function.__name__, function.__qualname__) for function in functions]
with common_pages.noted() as ran:
    for function in functions[::2]:
        function(3)
common_pages.keep_apart()
before = [function.__code__ for function in functions]
common_pages.lay_together(ran.values())
assert sys.getprofile() is None
assert [function(3) for function in functions] == expected
moved = [function.__code__ is not code for function, code in zip(functions, before)]
assert moved == [place % 2 == 0 for place in range(400)]
assert [(function.__name__, function.__qualname__) for function in functions] == names
apart = [function.__qualname__ is not sys.intern(function.__qualname__) for function in functions]
if sys.version_info < (3, 13):  # later ones keep each name of code once
    assert apart == [place % 2 == 0 and place != 8 for place in range(400)]
assert all(function.__qualname__ is function.__code__.co_qualname for place, function in enumerate(functions) if place != 8)
pages = lambda codes: len({id(code) // 4096 for code in codes})
print(pages(before[::2]), pages(function.__code__ for function in functions[::2]))
"""


def test_code_that_runs_is_laid_together_and_does_the_same() -> None:
    command = [sys.executable, "-c", LAID, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert before > 150
    assert after < 60
