"""The build: reproducible, refusing a release that is not whole, and with recipes that hold what they say."""

import dataclasses
import json
import lzma
import marshal
import random
import re
import runpy
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from running import ROOT

from gateway import bundle
from gateway.cli import bytecode
from gateway.cli.bytecode import Made, compiled, engine, marshalled
from gateway.cli.marshals import parted, referring, texts_of
from gateway.cli.packs import MADE as MADE_PACK
from gateway.cli.packs import SHARED, Compiled, compile_all, differences, make_packs, pack_of

SOURCES = {"_boot.py": b"install = None\n", "a/__init__.py": b"", "a/b.py": b"def f() -> int:\n    return 1\n"}
MADE = {"a.b": Made(frozenset(["x = 1"]), frozenset([("(?P<n>a)|b", 2), (b"\xff+", 0)]))}
LZMA2 = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 21}]
UNIT = ROOT / "deploy" / "gateway.service"


def test_a_release_needs_every_python_and_says_which_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "build_zipapp.py"), "--release", "-o", str(tmp_path / "gateway.pyz")]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert re.fullmatch(r"build_zipapp.py: a release needs python3\.1\d on PATH for its byte code\n", done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_every_pinned_file_has_a_hash_and_every_project_one_version() -> None:
    lock = (ROOT / "deploy" / "requirements.txt").read_text()
    projects = re.findall(r"^([a-z0-9-]+)==\S+ \\$", lock, re.MULTILINE)
    assert projects == sorted(set(projects))
    lines = [line for line in lock.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==\S+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in lines)


def packs_of(sources: dict[str, bytes], made: dict[str, Made], first: tuple[str, ...] = ()) -> dict[str, bytes]:
    """What an archive of the running Python and of one that is like it holds of byte code."""
    done = compile_all(sources, made)
    return make_packs({"this": done, "alike": done}, first)


def told(packs: dict[str, bytes], sources: dict[str, bytes], tag: str = "this") -> list[str]:
    return differences(tag, sources, packs.__getitem__)


def test_a_pack_is_the_byte_code_of_its_sources() -> None:
    for first in ((), ("a",), ("a", "a.b")):  # by itself, or in a block
        packs = packs_of(SOURCES, MADE, first)
        assert packs == packs_of(dict(reversed(SOURCES.items())), MADE, first)
        assert [told(packs, SOURCES, tag) for tag in ("this", "alike")] == [[], []]
        for other in (b"", b"def g() -> int:\n    return 1\n"):
            assert told(packs, SOURCES | {"a/b.py": other}) == ["a/b.py has other byte code"]


def test_byte_code_in_another_form_is_the_same_byte_code() -> None:
    joined = runpy.run_path(str(ROOT / "deploy" / "boot.py"))["joined"]
    for path in sorted((ROOT / "gateway" / "cli").glob("*.py")):
        raw = marshalled(compiled(path.read_bytes(), path.name))
        code = marshal.loads(raw)
        texts = texts_of([marshalled(compiled(b"other = 'names'", path.name)), raw])
        assert marshal.loads(texts + referring(raw, texts))[-1] == code
        frame, own = parted(raw)
        begins = [len(b"before"), *(len(b"before") + len(b"".join(own[:kind])) for kind in (1, 2, 3))]
        assert marshal.loads(joined(frame, b"before" + b"".join(own), begins)) == code


def test_a_text_that_comes_again_in_a_frame_is_there_once_in_a_process() -> None:
    joined = runpy.run_path(str(ROOT / "deploy" / "boot.py"))["joined"]
    source = b"def f():\n    return 'x, y'\ndef g():\n    return 'x, y', 'only here'\n"
    codes = []
    for _ in range(2):
        frame, own = parted(marshalled(compiled(source, "some folder/m.py")))
        begins = [0, *(len(b"".join(own[:kind])) for kind in (1, 2, 3))]
        codes += [
            one for one in marshal.loads(joined(frame, b"".join(own), begins)).co_consts if hasattr(one, "co_name")
        ]
    assert [code.co_filename for code in codes] == ["some folder/m.py"] * 4
    assert len({id(code.co_filename) for code in codes}) == 1
    assert len({id(text) for code in codes for text in told_texts(code) if text == "x, y"}) == 1
    assert len({id(text) for code in codes for text in told_texts(code) if text == "only here"}) == 2


def told_texts(code: Any) -> list[str]:
    """Return the texts among a code's constants."""
    values = [part for const in code.co_consts for part in (const if isinstance(const, tuple) else (const,))]
    return [value for value in values if isinstance(value, str)]


def test_a_constant_that_looks_like_a_mark_is_refused() -> None:
    frame = parted(marshalled(compiled(b"x = 1", "a.py")))[0]
    mark = frame[frame.index(b"\xf5") :][:4]
    with pytest.raises(ValueError, match="a constant holds the mark"):
        parted(marshalled(compiled(f"x = {mark!r}".encode(), "a.py")))


def test_byte_code_of_ours_keeps_the_types_of_fields_and_leaves_those_of_arguments_out() -> None:
    source = b"class C:\n    x: int\n    def f(self, a: int, /, *b: int, c: int = 1, **d: int) -> int:\n        return a + c\n"
    for file, told in (("gateway/m.py", []), ("other/m.py", ["a", "b", "c", "d", "return"])):
        names: dict[str, Any] = {}
        exec(compiled(source, file), names)
        assert sorted(names["C"].f.__annotations__) == told
        assert names["C"].__annotations__ == {"x": int}
        assert names["C"]().f(1) == 2


def test_byte_code_keeps_lines_and_leaves_docstrings_and_columns_out() -> None:
    source = b'"""M."""\nclass C:\n    """C."""\n    def f(self, x):\n        """F."""\n\n        return (x +\n            1 / x)\n'
    names: dict[str, Any] = {}
    code = compiled(source, "m.py")
    exec(code, names)
    one = names["C"]()
    assert (one.__doc__, one.f.__doc__, names.get("__doc__")) == ("-", None, None)
    usual: dict[str, Any] = {}
    exec(compile(source, "m.py", "exec"), usual)
    lean, full = one.f.__code__, usual["C"].f.__code__
    assert lines_of(lean) == lines_of(full)
    assert {place[2:] for place in lean.co_positions()} == {(None, None)}
    with pytest.raises(ZeroDivisionError) as caught:
        one.f(0)
    assert caught.traceback[-1].lineno == 7


def lines_of(code: CodeType) -> dict[int, int | None]:
    return {place: line for begin, end, line in code.co_lines() for place in range(begin, end, 2)}


def test_every_instruction_keeps_its_line_and_a_line_is_said_once() -> None:
    for path in sorted((ROOT / "gateway" / "cli").glob("*.py")):
        waiting = [(full := compile(path.read_bytes(), path.name, "exec"), bytecode._without_columns(full))]
        while waiting:
            full, lean = waiting.pop()
            assert lines_of(lean) == lines_of(full), full
            assert len(lean.co_linetable) <= len(full.co_linetable), full
            pairs = zip(full.co_consts, lean.co_consts, strict=True)
            waiting += [(inner, own) for inner, own in pairs if isinstance(inner, CodeType)]


def test_a_pack_tells_what_its_modules_make_and_of_which_engine() -> None:
    packs, other = packs_of(SOURCES, MADE), packs_of(SOURCES, {"a.b": Made(frozenset(["x = 2"]))})
    pack = packs[pack_of("this")]
    head = 12 + int.from_bytes(pack[8:12], "little")
    index = json.loads(
        zlib.decompress(pack[head + 4 : head + 4 + int.from_bytes(pack[head : head + 4], "little")], -15)
    )
    assert index["engine"] == engine()
    assert packs != other
    assert told(other, SOURCES) == []
    made = json.loads(lzma.decompress(packs[MADE_PACK], lzma.FORMAT_RAW, filters=LZMA2))
    assert made == {tag: {"a.b": MADE["a.b"].told()} for tag in ("this", "alike")}
    assert Made.read(MADE["a.b"].told()) == MADE["a.b"]
    assert told(packs | {MADE_PACK: other[MADE_PACK]}, SOURCES) == ["a/b.py has other byte code"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"a/b.py": b"def f() -> int:\n    return 2\n"}, "a/b.py has other byte code"),
        ({"_boot.py": b"install = 1\n"}, "_boot.py has other byte code"),
        ({"a/c.py": b""}, "a.c is only in the sources"),
        ({"a/b.py": None}, "a.b is only in the byte code"),
    ],
)
def test_byte_code_that_is_not_of_the_sources_is_named(change: dict[str, bytes | None], problem: str) -> None:
    other = {name: data for name, data in (SOURCES | change).items() if data is not None}
    assert told(packs_of(SOURCES, {}), other) == [problem]


def test_a_pack_that_was_cut_or_changed_is_never_unmarshalled() -> None:
    packs = packs_of(SOURCES, MADE)
    for name, begin in ((pack_of("this"), 4), (SHARED, 0)):
        for place in range(begin, len(packs[name]), 5):
            changed = bytearray(packs[name])
            changed[place] ^= 0x55
            try:
                assert told(packs | {name: bytes(changed)}, SOURCES), place
            except (ValueError, LookupError, TypeError, zlib.error):
                continue  # what `verify` turns into one line


def test_the_native_file_that_others_are_most_like_is_kept_whole_and_of_those_the_difference() -> None:
    noise = random.Random(1).randbytes
    middle = noise(20_000)
    natives = {
        "_native/gnu/a.cpython-311-x86.so": noise(9_000) + middle[9_000:],
        "_native/gnu/a.cpython-312-x86.so": middle,
        "_native/gnu/a.cpython-313-x86.so": middle[:9_000] + noise(11_000),
        "_native/win32/a.cp311-win.pyd": noise(5_000),
    }
    first, best, last, alone = natives
    done = {"this": tuple(getattr(compile_all(SOURCES, {}), each.name) for each in dataclasses.fields(Compiled))}
    texts = [noise(3_000) for _ in range(9)]
    sources = [(f"{turn}{number}.py", texts[number] + bytes([turn])) for turn in range(2) for number in range(9)]
    given = marshal.dumps((done, [], natives, marshal.dumps(sources)))
    command = [sys.executable, "-B", str(ROOT / "deploy" / "pack.py")]
    packs, told, order = marshal.loads(
        subprocess.run(command, input=given, capture_output=True, check=True, cwd=ROOT).stdout
    )
    kept = {name: raw for name, raw in packs.items() if name.startswith("_native/")}
    assert {name: about["like"] for name, about in told.items()} == {first: best, best: None, last: best, alone: None}
    assert sorted(kept) == sorted((f"{first}.difference", best, f"{last}.difference", alone))
    assert [kept[name] for name in (best, alone)] == [natives[name] for name in (best, alone)]
    for name in (first, last):
        assert bundle.restored(middle, kept[f"{name}.difference"]) == natives[name]
    # What is alike is side by side, whatever it is called.
    assert sorted(order) == sorted(name for name, _ in sources)
    assert [name[1:] for name in order[::2]] == [name[1:] for name in order[1::2]]


def test_the_unit_exposes_little() -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here")
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", str(UNIT)]
    done = subprocess.run(command, capture_output=True, text=True)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze is too old to look at a file")
    assert done.returncode == 0, done.stdout[-300:] + done.stderr


def test_the_recipes_start_the_archive_isolated_and_without_site_packages() -> None:
    assert re.search(r"^ExecStart=/usr/bin/python3 -I -S \S+gateway\.pyz serve$", UNIT.read_text(), re.MULTILINE)
    recipe = (ROOT / "deploy" / "Containerfile").read_text()
    assert '"-I", "-S", "/gateway.pyz"' in recipe
    assert "USER 65532:65532" in recipe


def test_slices_among_the_constants_are_written_as_the_newest_form_of_the_format_has_them() -> None:
    code = compiled(b"def f(items):\n    return items, 'a constant'\n", "a.py")
    inner = next(const for const in code.co_consts if hasattr(const, "co_consts"))
    sliced = inner.replace(co_consts=(slice(1, None), *inner.co_consts, slice("a", 2, -1)))
    raw = marshalled((code.replace(co_consts=(sliced, None)), 7))
    # A colon and the three parts: an integer, a text, none. Read back where this Python knows them.
    one, two, text = b"i\x01\0\0\0", b"i\x02\0\0\0", b"u\x01\0\0\0a"
    assert raw.count(b":" + one + b"NN") == 1
    assert raw.count(b":" + text + two + b"i\xff\xff\xff\xff") == 1
    if sys.version_info >= (3, 14):
        module, seven = marshal.loads(raw)
        assert seven == 7
        assert module.co_consts[0].co_consts == sliced.co_consts
