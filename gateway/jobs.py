"""The periodic jobs, one row each. A job that fails is logged and runs again; it never ends the server."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import Enum

import anyio

from gateway.app import Gateway
from gateway.services.archive_check import check_archive
from gateway.store.followed_authority import POLL_SECONDS


class By(Enum):
    """Which process does a job: each; the first worker of each group; one of all on the database, by a lease.

    A process without workers is a group of one. The supervisor restarts the first worker of its group. When the holder
    of a lease is gone, the first worker of another group takes the lease. So the other workers never load these jobs.
    """

    EACH = 0
    GROUP = 1
    ONE = 2


@dataclass(frozen=True, slots=True)
class Job:
    """One job, done every `every_seconds`. call: runs in the event loop and must not block it.

    is_due: returns whether there is work, before the process asks for the lease; None for always. first_seconds: when
    the job first runs, if not after `every_seconds`. Jobs that need much memory run soon and one after the other, so
    that a process shows early how much it needs.
    """

    name: str
    every_seconds: float
    call: Callable[[Gateway], Awaitable[object] | None]
    by: By = By.EACH
    first_seconds: float | None = None
    is_due: Callable[[Gateway], Awaitable[bool]] | None = None


_GRACE_SECONDS = 5.0

FOLLOWING = (
    Job("follow_authority", POLL_SECONDS, lambda gateway: gateway.store.authority.poll()),
    Job("follow_rules", POLL_SECONDS, lambda gateway: gateway.rules.keep_up()),
)
JOBS = (
    *FOLLOWING,
    Job("flush_access_hits", 1.0, lambda gateway: gateway.access.flush_hits()),
    Job("flush_refusals", 10.0, lambda gateway: gateway.authentication.refusals.flush(), first_seconds=8.0),
    Job("check_audit_chain", 900.0, lambda gateway: gateway.audit_chain.checkpoint(), by=By.ONE),
    Job("make_reports", 60.0, lambda gateway: gateway.reports.make_due(), by=By.ONE, first_seconds=4.0),
    Job(  # takes a lease of its own, which it renews while it sends
        "send_events",
        1.0,
        lambda gateway: gateway.event_sender.run(),
        by=By.GROUP,
        is_due=lambda gateway: gateway.event_sender.has_outputs(),
    ),
    Job("note_posture", 60.0, lambda gateway: gateway.trust_audits.record_scores(), by=By.ONE, first_seconds=6.0),
    Job(
        "release_budget_orphans",
        30.0,
        lambda gateway: gateway.spending.release_orphans(),
        by=By.ONE,
        first_seconds=3.0,
    ),
    Job("publish_feed", 1.0, lambda gateway: gateway.feed.publish()),
    Job("beat", 15.0, lambda gateway: gateway.fleet.beat(), by=By.GROUP, first_seconds=0.2),
    Job("note_running", 15.0, lambda gateway: gateway.running.save(), by=By.GROUP, first_seconds=0.2),
    Job("ask_peers", 15.0, lambda gateway: gateway.fleet_peers.ask_all(), by=By.ONE, first_seconds=1.0),
    Job("prune", 600.0, lambda gateway: gateway.retention.prune(), by=By.ONE, first_seconds=9.0),
    Job(
        "watch_archive",
        3600.0,
        lambda gateway: check_archive(gateway.alerts),
        by=By.GROUP,
        first_seconds=7.0,
    ),
    Job(
        "sum_traffic",
        1.0,
        lambda gateway: gateway.traffic.keep_up(),
        by=By.ONE,
        is_due=lambda gateway: gateway.traffic.is_behind(),
    ),
    Job("publish_metrics", 1.0, lambda gateway: gateway.metrics.publish()),
)


async def run_jobs(gateway: Callable[[], Gateway], jobs: Sequence[Job] = JOBS, *, is_first: bool = True) -> None:
    """Run `jobs` until cancelled. gateway: returns the one that answers now; a reload makes another.

    is_first: whether this process is the first of its group, or alone; the others run what each process does.
    """
    async with anyio.create_task_group() as group:
        for job in jobs:
            if is_first or job.by is By.EACH:
                group.start_soon(_repeat, job, gateway)


async def _repeat(job: Job, gateway: Callable[[], Gateway]) -> None:
    await anyio.sleep(job.every_seconds if job.first_seconds is None else job.first_seconds)
    while True:
        await run_job(job, gateway())
        await anyio.sleep(job.every_seconds)


async def run_job(job: Job, gateway: Gateway) -> None:
    """Run a job once, if it is due and this process holds its lease, which each of its writes checks again.

    A failure is logged.
    """
    try:
        if job.is_due is not None and not await job.is_due(gateway):
            return
        guard: AbstractContextManager[None] = nullcontext()
        if job.by is By.ONE:
            lease = await gateway.leases.hold(job.name, 2 * job.every_seconds + _GRACE_SECONDS)
            if lease is None:
                return
            guard = gateway.leases.guard(lease)
        with guard:
            waiting = job.call(gateway)
            if waiting is not None:
                await waiting
    except Exception as error:  # the edge of a job: whatever failed, the next time may do
        gateway.log.error("job_failed", error=error, job=job.name)
