"""Compile all sources of one folder into another with the Python that runs this. Arguments: SOURCES TARGET."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from gateway.cli.bytecode import compile_pyc

sources, target = map(Path, sys.argv[1:])
for path in sorted(sources.rglob("*.py")):
    name = path.relative_to(sources)
    (target / name).parent.mkdir(parents=True, exist_ok=True)
    (target / name).with_suffix(".pyc").write_bytes(compile_pyc(path.read_bytes(), name.as_posix()))
sys.stdout.write(sys.implementation.cache_tag)
