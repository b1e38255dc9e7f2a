"""The audit log at a million events. One command: `python bench/audit [EVENTS]`.

Three questions. How long does a filtered page take, for each filter that needs no full scan, the slowest of ten? What
does `verify` take, and does its memory grow with the log? How fast does an export run? The database is made by the
program's own way to append, in a folder that is removed afterwards.
"""

import argparse
import io
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import anyio

from gateway.clock import Clock, Ids
from gateway.domain.audit import AuditFilter
from gateway.domain.principals import Caller, RequestContext, local
from gateway.log import Log
from gateway.services.audit import Audit
from gateway.services.audit_export import ExportFormat, export
from gateway.store.store import Store, open_store

ACTIONS = ("chat_completed", "shield_scan_block", "api_key_refused", "policy_changed")
BATCH = 2000
GOAL_MS = 50


async def fill(store: Store, audit: Audit, count: int) -> None:
    """Append events of 40 actors; one in a thousand is rare in every column."""
    for begin in range(0, count, BATCH):

        def work(tx: Any, start: int = begin) -> None:
            for number in range(start, min(start + BATCH, count)):
                is_rare = number % 1000 == 0
                audit.append(
                    tx,
                    audit.event(
                        "user_created" if is_rare else ACTIONS[number % len(ACTIONS)],
                        source="cli" if is_rare else "api",
                        principal=local("rare" if is_rare else f"agent-{number % 40}"),
                        resource_type="user" if is_rare else "text",
                        resource_id=f"thing_{number}",
                        details={"number": number, "score": number % 100},
                    ),
                )

        await store.db.write(work)


def peak_mib() -> float:
    """Return the most memory this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def run(count: int, folder: str) -> int:
    """Make the log and measure."""
    clock = Clock()
    ids = Ids(clock)
    store = await open_store(f"{folder}/gateway.db", clock=clock, ids=ids, log=Log(io.StringIO(), clock))
    audit = Audit(store=store, clock=clock, ids=ids)
    begin = time.perf_counter()
    await fill(store, audit, count)
    print(f"appended {count:,} events in {time.perf_counter() - begin:.1f} s")
    middle = (await audit.page(AuditFilter(limit=1))).items[0].occurred_at
    filters = {
        "newest": AuditFilter(),
        "limit 1000": AuditFilter(limit=1000),
        "action": AuditFilter(action="api_key_refused"),
        "rare action": AuditFilter(action="user_created"),
        "rare actor": AuditFilter(actor="rare"),
        "rare source": AuditFilter(source="cli"),
        "rare resource_type": AuditFilter(resource_type="user"),
        "rare source and action": AuditFilter(source="cli", action="user_created"),
        "no such actor": AuditFilter(actor="nobody"),
        "no such action": AuditFilter(action="nothing"),
        "since and until": AuditFilter(since=middle - 60_000, until=middle - 1000),
        "exclude_actions": AuditFilter(exclude_actions=("chat_completed", "shield_scan_block")),
    }
    slowest = 0.0
    for name, wanted in filters.items():
        times = []
        for _ in range(10):
            begin = time.perf_counter()
            page = await audit.page(wanted)
            times.append((time.perf_counter() - begin) * 1000)
        worst = max(times)
        slowest = max(slowest, worst if wanted.limit == 100 else 0.0)
        print(f"{name:<24} {len(page.items):>5} events  median {sorted(times)[5]:7.2f} ms  slowest {worst:7.2f} ms")
    before = peak_mib()
    begin = time.perf_counter()
    report = await audit.verify()
    print(
        f"verify: {report.events:,} events, ok {report.ok}, {time.perf_counter() - begin:.1f} s, "
        f"memory {before:.0f} -> {peak_mib():.0f} MiB"
    )
    begin, size = time.perf_counter(), 0
    context = RequestContext(request_id="req_bench")
    async for piece in await export(store, audit, Caller(local("bench"), context), AuditFilter(), ExportFormat.JSONL):
        size += len(piece)
    print(f"export: {size >> 20} MiB of JSON lines in {time.perf_counter() - begin:.1f} s, memory {peak_mib():.0f} MiB")
    await store.aclose()
    print(f"slowest page of 100: {slowest:.2f} ms, goal {GOAL_MS} ms: {'met' if slowest <= GOAL_MS else 'MISSED'}")
    return int(slowest > GOAL_MS)


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="bench/audit", description=__doc__.split("\n")[0])
    parser.add_argument("events", nargs="?", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(run, options.events, folder)


if __name__ == "__main__":
    sys.exit(main())
