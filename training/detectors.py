"""Print what a detector finds alone and beside the shield, in texts that the shield has not seen:

    python -m training.detectors '{"name": "guard", "kind": "tei_predict", "base_url": "http://127.0.0.1:8085",
                                   "labels": {"INJECTION": "injection"}}' ['score 10-59' ...]

The argument is the body of `POST /api/detectors`. The others are values of `when`; each makes a line of its own. The
effect is `veto` in all lines. Each text of a test fold is asked about once, one after another, through a whole gateway
in memory. The time of a line is that of the scan, and of the judgement where `when` asks for one. No text is printed.
"""

import argparse
import asyncio
import io
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.clock import Clock
from gateway.compose import open_gateway
from gateway.domain.detectors import Detector
from gateway.domain.principals import Caller, RequestContext, local
from gateway.llm.base import Leaf, LeafKind
from gateway.log import Log
from gateway.schema import decode
from gateway.services.detector_calls import ERROR
from gateway.services.detectors import NewDetector
from gateway.settings import Settings
from gateway.shield.detections import Detection, Direction, Effect, ScanResult, Verdict
from gateway.shield.scoring import DEFAULT_POLICY, judge
from gateway.shield.suite import percentile
from training.corpus import OTHERS, read_rows
from training.report import inside, texts_of


@dataclass(frozen=True, slots=True)
class Judged:
    """One text: what the shield found and what the detector said, each with its time."""

    result: ScanResult
    shield_us: int
    said: Sequence[Detection]
    detector_us: int


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m training.detectors", description=__doc__.partition("\n")[0])
    parser.add_argument("detector", type=json.loads, help="body of POST /api/detectors, as JSON")
    parser.add_argument("when", nargs="*", help="values of when, besides always")
    parser.add_argument("--data", type=Path, default=OTHERS, help="folder of the texts of others")
    options = parser.parse_args()
    tests = [row for row in read_rows(options.data) if row.is_test]
    attacks, harmless = ([row for row in tests if row.is_attack is wanted] for wanted in (True, False))
    sets = {
        "attacks": list(texts_of(attacks)),
        "attacks inside documents": list(inside(attacks, harmless)),
        "harmless": list(texts_of(harmless)),
    }
    settings = Settings(data_dir=":memory:", rbac_enabled=False)
    async with open_gateway(settings, log=Log(io.StringIO(), Clock())) as gateway:
        who, context = local("bench"), RequestContext(gateway.ids.new("req"))
        new = replace(decode(NewDetector, options.detector), effect=Effect.VETO)
        detector = await gateway.detectors.create(Caller(who, context), new)
        whens = [replace(detector, when=when) for when in ("always", *options.when)]
        for name, texts in sets.items():
            found = []
            for text in texts:
                begun = time.perf_counter()
                result = await gateway.scans.scanner.scan(text, Direction.INBOUND, DEFAULT_POLICY)
                scanned = time.perf_counter()
                leaf = Leaf("text", text, LeafKind.CONTENT)
                said = await gateway.detector_calls.ask(detector, (leaf,), Direction.INBOUND, owner="bench")
                ended = time.perf_counter()
                found.append(Judged(result, _us(scanned - begun), said, _us(ended - scanned)))
            _tell(name, found, whens)


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)


def _tell(name: str, found: Sequence[Judged], whens: Iterable[Detector]) -> None:
    reasons = Counter(one.description for judged in found for one in judged.said if one.label == ERROR)
    for reason, count in reasons.items():
        print(f"{name}: {count} texts: {reason}")
    print(f"\n{f'{name}: {len(found)} texts':<44}", end="")
    print("".join(f"{head:>10}" for head in ("flagged", "blocked", "asked", "p50 ms", "p95 ms")), flush=True)
    _line("the detector alone", [(judge(_judgements(one)), True, one.detector_us) for one in found])
    _line("the shield alone", [(one.result, False, one.shield_us) for one in found])
    for detector in whens:
        lines = []
        for one in found:
            is_asked = one.result.verdict is not Verdict.BLOCK and detector.is_asked(one.result, chance=0.0)
            both = judge((*one.result.detections, *one.said)) if is_asked else one.result
            lines.append((both, is_asked, one.shield_us + is_asked * one.detector_us))
        _line(f"both, {detector.when}", lines)


def _judgements(one: Judged) -> list[Detection]:
    """Return what the detector said, without errors: nothing was found by them."""
    return [said for said in one.said if said.label != ERROR]


def _line(name: str, lines: Sequence[tuple[ScanResult, bool, int]]) -> None:
    verdicts = [result.verdict for result, _, _ in lines]
    shares = (
        sum(verdict is not Verdict.ALLOW for verdict in verdicts),
        verdicts.count(Verdict.BLOCK),
        sum(is_asked for _, is_asked, _ in lines),
    )
    times_us = sorted(elapsed_us for _, _, elapsed_us in lines)
    times = "".join(f"{percentile(times_us, percent) / 1000:>10.1f}" for percent in (50, 95))
    print(f"{name:<44}" + "".join(f"{share / len(lines):>10.2%}" for share in shares) + times, flush=True)


if __name__ == "__main__":
    asyncio.run(main())
