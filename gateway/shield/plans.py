"""Plans as a file beside the rules, so that a start need not derive them again. Knows no rule and no path.

The file holds the digest of the rule file it was made from: plans of any other file are not used.
"""

import json
from collections.abc import Sequence

from gateway.shield.literals import Lead
from gateway.shield.plan import Plan

_VERSION = 2


def write_plans(digest: str, plans: Sequence[Plan]) -> bytes:
    """Return the plans of the rule file with this SHA-256 as JSON, the same bytes for the same plans."""
    rows = [
        [
            plan.source,
            plan.how,
            plan.reach_chars,
            [[lead.literal, lead.low, lead.high] for lead in plan.leads],
            plan.rest,
            plan.starts,
            plan.run_chars,
            plan.run_digits,
            plan.first,
            plan.gate,
        ]
        for plan in plans
    ]
    return json.dumps({"version": _VERSION, "digest": digest, "plans": rows}, separators=(",", ":")).encode()


def read_plans(raw: bytes, digest: str) -> tuple[Plan, ...] | None:
    """Return the plans in `raw` if they were made from the rule file with this SHA-256, else None.

    The file is trusted as the program itself is: it is made when that is built.
    """
    document = json.loads(raw)
    if document["version"] != _VERSION or document["digest"] != digest:
        return None
    return tuple(
        Plan(
            source,
            how,
            reach,
            leads=tuple(Lead(*lead) for lead in leads),
            rest=rest,
            starts=starts,
            run_chars=run_chars,
            run_digits=run_digits,
            first=first,
            gate=tuple(gate),
        )
        for source, how, reach, leads, rest, starts, run_chars, run_digits, first, gate in document["plans"]
    )
