"""Fuzz one target for as long as one likes, guided by coverage. Needs atheris, which the tests do not.

    python tests/fuzz/run.py chat_walker -max_total_time=600

Everything after the target's name goes to libFuzzer; a folder there keeps what was found.
"""

import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2])]


def main() -> None:
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed in this environment: pip install atheris, on Linux with CPython.")
    with atheris.instrument_imports(include=["gateway"]):
        from fuzz.pieces import PIECES
        from fuzz.targets import TARGETS
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"Name a target: {', '.join(TARGETS)}.")
    name = sys.argv.pop(1)
    with tempfile.NamedTemporaryFile("w", suffix=".dict", delete=False) as words:
        for piece in PIECES[name]:
            words.write('"' + "".join(f"\\x{byte:02x}" for byte in piece) + '"\n')
    atheris.Setup([*sys.argv, f"-dict={words.name}"], TARGETS[name])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
