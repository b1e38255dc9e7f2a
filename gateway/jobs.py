"""What is done now and then, one row each. A job that fails is logged and runs again; it never ends the server."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio

from gateway import bundle
from gateway.app import Gateway


@dataclass(frozen=True, slots=True)
class Job:
    """Something to do every `every_seconds` in each process. call: runs in the event loop and must not hold it up.

    is_alone: whether only one process of all on the database does it; another one goes on when that one is gone.
    is_due: whether there is something to do, asked before who does it is written anywhere; None for always.
    first_seconds: when it is done first, if not after `every_seconds`. What loads much of the program is done soon, so
    that a process has all the memory it needs before long, and one after the other.
    """

    name: str
    every_seconds: float
    call: Callable[[Gateway], Awaitable[object] | None]
    is_alone: bool = False
    first_seconds: float | None = None
    is_due: Callable[[Gateway], bool] | None = None


_GRACE_SECONDS = 5.0

JOBS = (
    Job("flush_access_hits", 1.0, lambda gateway: gateway.access.flush_hits()),
    Job("flush_refusals", 10.0, lambda gateway: gateway.authentication.flush_refusals(), first_seconds=8.0),
    Job("check_audit_chain", 900.0, lambda gateway: gateway.audit_chain.checkpoint(), is_alone=True),
    Job("make_reports", 60.0, lambda gateway: gateway.reports.make_due(), is_alone=True, first_seconds=4.0),
    Job("send_events", 1.0, lambda gateway: gateway.event_sender.run()),
    Job("note_posture", 60.0, lambda gateway: gateway.trust_audits.note(), is_alone=True, first_seconds=6.0),
    Job("release_budget_orphans", 30.0, lambda gateway: gateway.spending.release_orphans(), first_seconds=3.0),
    Job("publish_feed", 1.0, lambda gateway: gateway.feed.publish()),
    Job("beat", 15.0, lambda gateway: gateway.fleet.beat(), is_alone=True, first_seconds=0.2),
    Job("ask_peers", 15.0, lambda gateway: gateway.fleet_peers.ask_all(), is_alone=True, first_seconds=1.0),
    Job("prune", 600.0, lambda gateway: gateway.retention.prune(), is_alone=True, first_seconds=9.0),
    Job("watch_archive", 3600.0, lambda gateway: gateway.archive_watch.look(), is_alone=True, first_seconds=7.0),
    Job(
        "sum_traffic",
        1.0,
        lambda gateway: gateway.traffic.keep_up(),
        is_alone=True,
        is_due=lambda gateway: gateway.traffic.is_behind(),
    ),
    Job("let_go_unpacked", 10.0, lambda _: bundle.let_go_unpacked()),
    Job("publish_metrics", 1.0, lambda gateway: gateway.metrics.publish()),
)


async def run_jobs(gateway: Callable[[], Gateway], jobs: Sequence[Job] = JOBS, *, defer_seconds: float = 0.0) -> None:
    """Run `jobs` until cancelled. gateway: returns the one that answers now; a reload makes another.

    defer_seconds: how much later those begin that one process does alone. Of several, all but one defer them: one does
    them all, and the others need not load what they take.
    """
    async with anyio.create_task_group() as group:
        for job in jobs:
            group.start_soon(_repeat, job, gateway, defer_seconds if job.is_alone else 0.0)


async def run_each(gateway: Gateway, jobs: Sequence[Job] = JOBS) -> None:
    """Run each of `jobs` once, one after the other."""
    for job in jobs:
        await _run(job, gateway)


async def _repeat(job: Job, gateway: Callable[[], Gateway], defer_seconds: float) -> None:
    await anyio.sleep(defer_seconds + (job.every_seconds if job.first_seconds is None else job.first_seconds))
    while True:
        await _run(job, gateway())
        await anyio.sleep(job.every_seconds)


async def _run(job: Job, gateway: Gateway) -> None:
    try:
        if job.is_due is not None and not job.is_due(gateway):
            return
        is_ours = not job.is_alone or await gateway.leases.hold(job.name, 2 * job.every_seconds + _GRACE_SECONDS)
        waiting = job.call(gateway) if is_ours else None
        if waiting is not None:
            await waiting
    except Exception as error:  # the edge of a job: whatever failed, the next time may do
        gateway.log.error("job_failed", error=error, job=job.name)
