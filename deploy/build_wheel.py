"""Build a wheel, for `pip install .`, pipx and uvx: setuptools with rules, plans, documents and build id inside.

A checkout has them beside the package, where a wheel has no room of its own. PEP 517 names these functions.
"""

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def build_wheel(
    wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """Write a wheel into a folder, and return its name."""
    with _data_inside():
        return str(build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))


@contextlib.contextmanager
def _data_inside() -> Iterator[None]:
    """Put rules, plans, documents and build id into the package while it is built."""
    from build_zipapp import BUILD_FILE, build_id, plan_rules

    made = {ROOT / "gateway" / "rules.json": (ROOT / "rules.json").read_bytes()}
    made[ROOT / "gateway" / "rules.plans"] = plan_rules()
    made[ROOT / BUILD_FILE] = build_id().encode()
    for page in (ROOT / "docs").rglob("*.md"):
        made[ROOT / "gateway" / page.relative_to(ROOT)] = page.read_bytes()
    try:
        for path, data in made.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        yield
    finally:
        for path in made:
            path.unlink(missing_ok=True)
        shutil.rmtree(ROOT / "gateway" / "docs", ignore_errors=True)
