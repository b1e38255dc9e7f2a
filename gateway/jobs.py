"""What is done now and then, one row each. A job that fails is logged and runs again; it never ends the server."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio

from gateway.app import Gateway


@dataclass(frozen=True, slots=True)
class Job:
    """Something to do every `every_seconds` in each process. call: runs in the event loop and must not hold it up."""

    name: str
    every_seconds: float
    call: Callable[[Gateway], Awaitable[None] | None]


JOBS = (
    Job("flush_access_hits", 1.0, lambda gateway: gateway.access.flush_hits()),
    Job("flush_refusals", 10.0, lambda gateway: gateway.authentication.flush_refusals()),
    Job("check_audit_chain", 900.0, lambda gateway: gateway.audit_chain.checkpoint()),
    Job("note_posture", 60.0, lambda gateway: gateway.trust_audits.note()),
    Job("release_budget_orphans", 30.0, lambda gateway: gateway.spending.release_orphans()),
    Job("publish_feed", 1.0, lambda gateway: gateway.feed.publish()),
    Job("publish_metrics", 1.0, lambda gateway: gateway.metrics.publish()),
)


async def run_jobs(gateway: Callable[[], Gateway], jobs: Sequence[Job] = JOBS) -> None:
    """Run `jobs` until cancelled. gateway: returns the one that answers now; a reload makes another."""
    async with anyio.create_task_group() as group:
        for job in jobs:
            group.start_soon(_repeat, job, gateway)


async def _repeat(job: Job, gateway: Callable[[], Gateway]) -> None:
    while True:
        await anyio.sleep(job.every_seconds)
        current = gateway()
        try:
            waiting = job.call(current)
            if waiting is not None:
                await waiting
        except Exception as error:  # the edge of a job: whatever failed, the next time may do
            current.log.error("job_failed", error=error, job=job.name)
