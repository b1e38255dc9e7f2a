"""A frozen record of what the shield found for secrets and numbers, and what a shield of today loses of it.

    python -m tests.shield.oracle > tests/shield/oracle.json.xz

The record holds the examples of the rules, the cases of the suite, and examples in encodings, each with the verdict and
the spans that the shield gave. Rules may be merged and renamed, so it is the category of a span that must stay.
"""

import base64
import html
import json
import lzma
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gateway.shield import Direction, Policy, ScanResult, Shield, Verdict, load
from gateway.shield.detections import MASKED_CATEGORIES
from gateway.shield.suite import load_suite

RECORD = Path(__file__).with_name("oracle.json.xz")
POLICY = Policy(categories=MASKED_CATEGORIES)
_STRENGTH = [Verdict.ALLOW, Verdict.REVIEW, Verdict.BLOCK]
ENCODINGS = (
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: f"see {base64.urlsafe_b64encode(text.encode()).decode()} for it",
    lambda text: text.encode().hex(),
    lambda text: quote(text, safe=""),
    lambda text: html.escape(text),
    lambda text: json.dumps({"log": json.dumps({"line": text})}),
    lambda text: "\\x" + text.encode().hex("\\").replace("\\", "\\x"),
    lambda text: text[::-1],
    lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    lambda text: f"\x1b[1m{text[:9]}\x1b[0m{text[9:]}",
)

Entry = dict[str, Any]


def record_of(shield: Shield, text: str, direction: Direction = Direction.INBOUND) -> Entry:
    """Scan a text for secrets and numbers; write down the verdict and each rule, its category, its view and its spans."""
    result = shield.scan(text, direction, policy=POLICY)
    return {"verdict": result.verdict.value, "found": sorted(_found(result))}


def losses(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say what a record of now lacks: a span no category of which overlaps it, or a verdict that has changed."""
    lost = []
    old, new = (_STRENGTH.index(Verdict(one["verdict"])) for one in (before, now))
    if new < old:
        lost.append(f"verdict {before['verdict']} became {now['verdict']}")
    if old == 0 < new:
        lost.append(f"harmless text became {now['verdict']}: {[one[1] for one in now['found']]}")
    for category, rule, _view, start, end in before["found"]:
        if not any(one[0] == category and one[3] < end and start < one[4] for one in now["found"]):
            lost.append(f"{category} at {start}:{end}, once found by {rule}")
    return lost


def texts(shield: Shield) -> Iterator[tuple[str, Direction]]:
    """Yield own texts: examples of rules for secrets and numbers, every second one encoded as well, and the suite."""
    examples = [
        text for rule in shield.rules if rule.category in MASKED_CATEGORIES for text in rule.match + rule.passes
    ]
    for index, text in enumerate(dict.fromkeys(examples)):
        yield text, list(Direction)[index % 2]
        if index % 2 == 0:
            yield ENCODINGS[index // 2 % len(ENCODINGS)](text), Direction.INBOUND
    for case in load_suite():
        if case.category in MASKED_CATEGORIES:
            yield case.sent(), case.direction


def read() -> Sequence[Entry]:
    """Return the entries of the record."""
    entries: list[Entry] = json.loads(lzma.decompress(RECORD.read_bytes()))
    return entries


def _found(result: ScanResult) -> Iterator[tuple[str, str, str, int, int]]:
    for one in result.detections:
        for start, end in one.spans or ((one.start, one.end),):
            yield one.category, one.rule, one.view, start, end


def main() -> None:
    """Write a new record to the standard output."""
    shield = load()
    entries = [{"text": text, "direction": way.value} | record_of(shield, text, way) for text, way in texts(shield)]
    sys.stdout.buffer.write(lzma.compress(json.dumps(entries).encode(), preset=9))


if __name__ == "__main__":
    main()
