"""Build a wheel, for `pip install .`, pipx and uvx: setuptools, with rules, plans and build id put into the package.

A checkout has the rules beside the package, where a wheel has no room of its own. PEP 517 names these functions.
"""

import contextlib
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
    with _rules_inside():
        return str(build_meta.build_wheel(wheel_directory, config_settings, metadata_directory))


@contextlib.contextmanager
def _rules_inside() -> Iterator[None]:
    """Put the rules, their plans and the build id into the package while it is built."""
    from build_zipapp import BUILD_FILE, build_id, plan_rules

    made = {ROOT / "gateway" / "rules.json": (ROOT / "rules.json").read_bytes()}
    made[ROOT / "gateway" / "rules.plans"] = plan_rules()
    made[ROOT / BUILD_FILE] = build_id().encode()
    try:
        for path, data in made.items():
            path.write_bytes(data)
        yield
    finally:
        for path in made:
            path.unlink(missing_ok=True)
