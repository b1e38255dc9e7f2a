"""One command that prints the detection tables: python -m bench.detection --data DIR"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.detection.rows import NEEDED, NoData, Row, read_rows
from bench.detection.tables import Outcome, print_by, print_disguises
from gateway.shield import Direction, RuleError, Shield, load

NOTE = """\

How to read this. The rules are written by hand and nothing is trained here, so each source's line is what a
leave-one-source-out run would print: no figure changes when a source is left out. That holds only for sources whose
texts nobody read while writing rules; figures of the others are too good. The statistical model has learned
from these texts: what it adds to a source that it has not seen is printed by
python -m bench.detection.train --data DIR --leave-one-out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; return 0, or 2 when there is nothing to measure or no usable rule file."""
    parser = argparse.ArgumentParser(prog="python -m bench.detection", epilog=NEEDED,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--data", type=Path, help="folder of labelled texts")
    parser.add_argument("--rules", type=Path, help="rule file; the bundled one if not given")
    parser.add_argument("--source", help="only sources whose name holds this")
    parser.add_argument("--show", type=int, default=0, help="print so many false alarms and misses")
    options = parser.parse_args(arguments)
    if options.data is None:
        print(NEEDED, file=sys.stderr)
        return 2
    try:
        rows = [row for row in read_rows(options.data) if not options.source or options.source in row.source]
        shield = load(options.rules)
    except NoData as error:
        print(f"{error}\n\n{NEEDED}", file=sys.stderr)
        return 2
    except RuleError as error:
        print(f"rules: {error}", file=sys.stderr)
        return 2
    began = time.perf_counter()
    outcomes = [judge(shield, row) for row in rows]
    seconds = time.perf_counter() - began
    chars = sum(len(row.text) for row in rows)
    report(outcomes)
    show(outcomes, options.show)
    print(NOTE)
    print(f"\n{len(shield.rules)} rules ({shield.digest[:12]}), {len(rows)} texts, {chars} characters, {seconds:.1f} s")
    return 0


def judge(shield: Shield, row: Row) -> Outcome:
    """Scan one row as inbound text."""
    result = shield.scan(row.text, Direction.INBOUND)
    counted = [detection for detection in result.detections if detection.score]
    return Outcome(
        row=row,
        verdict=result.verdict,
        score=result.score,
        rules=tuple(detection.rule for detection in counted),
        categories=frozenset(detection.category for detection in counted),
    )


def report(outcomes: Sequence[Outcome]) -> None:
    """Print every table."""
    attacks = [one for one in outcomes if one.row.file == "injection" and one.row.is_attack]
    plain = [one for one in attacks if not one.row.is_disguised]
    print_by("attacks by source", plain, lambda row: row.source)
    print_by("attacks by kind", plain, lambda row: row.kind)
    print_by("attacks by language", plain, lambda row: row.lang)
    print_disguises(outcomes)
    harmless = [one for one in outcomes if one.row.file in ("benign", "injection") and not one.row.is_attack]
    print_by("harmless texts by kind (flagged wrongly)", harmless, lambda row: row.kind)
    print_by("harmless texts by source (flagged wrongly)", harmless, lambda row: f"{row.source} {row.kind}")
    print_by("harmless texts by language (flagged wrongly)", harmless, lambda row: row.lang)
    for name in ("secrets", "pii"):
        leaks = [one for one in outcomes if one.row.file == name]
        print_by(f"{name}: leaks found", [one for one in leaks if one.row.is_attack], lambda row: row.source)
        print_by(f"{name}: look-alikes", [one for one in leaks if not one.row.is_attack], lambda row: row.source)
    print_rules(outcomes)


def print_rules(outcomes: Sequence[Outcome]) -> None:
    """Print which rules cause the false alarms, and how many rules no text met."""
    wrong = Counter(rule for one in outcomes if one.is_flagged and not one.row.is_attack for rule in one.rules)
    met = {rule for one in outcomes for rule in one.rules}
    print(f"\nrules in false alarms: {', '.join(f'{rule} {count}' for rule, count in wrong.most_common(20)) or 'none'}")
    print(f"rules that counted somewhere: {len(met)}")


def show(outcomes: Sequence[Outcome], count: int) -> None:
    """Print the ids and rules of the first false alarms and the ids of the first misses; never a text."""
    alarms = [one for one in outcomes if one.is_flagged and not one.row.is_attack and one.row.file == "benign"]
    misses = [one for one in outcomes if not one.is_found and one.row.is_attack]
    for one in alarms[:count]:
        print(f"false alarm {one.row.source} {one.row.id}: {one.score} {', '.join(one.rules)}")
    for one in misses[:count]:
        print(f"missed {one.row.source} {one.row.id}: {one.score} {', '.join(one.rules)}")


if __name__ == "__main__":
    raise SystemExit(main())
