"""Every line of the threat model names tests, and each of them exists."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "trust" / "threat-model.md").read_text("utf-8")
NAMED = re.compile(r"`(tests/[a-z0-9_/]+\.py)::(test_[a-z0-9_]+)`")


def test_every_test_that_the_threat_model_names_exists() -> None:
    named = set(NAMED.findall(TEXT))
    assert len(named) > 50
    missing = [
        f"{path}::{name}"
        for path, name in sorted(named)
        if not (ROOT / path).is_file() or f"def {name}(" not in (ROOT / path).read_text("utf-8")
    ]
    assert missing == []


def test_every_promise_names_a_test() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.startswith(("| promise", "| ---"))]
    assert [line for line in rows if not NAMED.search(line)] == []
