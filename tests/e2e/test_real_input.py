"""Labelled texts of every kind through the real process: attacks are found, harmless texts pass, nothing breaks."""

import gzip
import json
from pathlib import Path

import pytest
from running import ROOT, Served

DATA = ROOT.parent / "shared" / "data" / "detection"
SAMPLE = 60

# The least share of a sample that must be found (REVIEW or BLOCK, any detection for pii), and the most of harmless
# texts that may be. Far below what training.report measures: a sample is small, and this test is about the way through.
LEAST_FOUND = {"injection": 0.6, "jailbreak": 0.6, "extraction": 0.6, "indirect": 0.5, "secret": 0.7, "pii": 0.9}
MOST_FLAGGED = {"benign": 0.04, "benign_hard": 0.12}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DATA.is_dir(), reason="the labelled texts (../shared/data/detection) are not here"),
]


def sample(kind: str, label: int) -> list[str]:
    """Return up to SAMPLE texts of a kind, spread over all files and sources, always the same ones."""
    rows = []
    for path in sorted(Path(DATA).glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows += [row for row in map(json.loads, file) if (row["kind"], row["label"]) == (kind, label)]
    rows.sort(key=lambda row: row["id"])
    return [row["text"] for row in rows[:: max(1, len(rows) // SAMPLE)]][:SAMPLE]


@pytest.mark.parametrize("kind", LEAST_FOUND)
def test_attacks_and_leaks_of_a_kind_are_found(gateway: Served, kind: str) -> None:
    texts = sample(kind, 1)
    found = 0
    for text in texts:
        answer = gateway.scan(text)
        assert answer.status == 200
        data = answer.json["data"]
        found += bool(data["detections"]) if kind == "pii" else data["verdict"] != "ALLOW"
        for detection in data["detections"]:
            assert 0 <= detection["start"] <= detection["end"] <= len(text)
    assert found >= LEAST_FOUND[kind] * len(texts)


@pytest.mark.parametrize("kind", MOST_FLAGGED)
def test_harmless_texts_of_a_kind_pass(gateway: Served, kind: str) -> None:
    texts = sample(kind, 0)
    verdicts = [gateway.scan(text).json["data"]["verdict"] for text in texts]
    assert sum(verdict != "ALLOW" for verdict in verdicts) <= MOST_FLAGGED[kind] * len(texts)
