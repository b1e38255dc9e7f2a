"""`demo-data`: a made-up day in a fresh data folder, to look at the gateway with something in it."""

import argparse

import anyio

from gateway import compose, strict_json
from gateway.cli.command import OK, Console, argument, command, load_settings, make_log, past_time
from gateway.clock import SystemClock
from gateway.errors import SetupError
from gateway.schema import encode
from gateway.services.demo_data import DemoData, DemoReport

DEFAULT_REQUESTS = 100_000
MOST_REQUESTS = 10_000_000


@command(
    "demo-data",
    "Fill a fresh data folder with a made-up day of traffic.",
    "--data-dir /tmp/demo --seed 7",
    argument("--seed", default="1", metavar="N", help="which day; the same number makes the same data (1)"),
    argument(
        "--requests", default=str(DEFAULT_REQUESTS), metavar="N", help=f"requests of the day ({DEFAULT_REQUESTS})"
    ),
    argument("--until", metavar="TIME", help="when the day ends, such as 2030-01-31T12:00:00Z; now"),
    has_json=True,
)
def _demo_data(options: argparse.Namespace, console: Console) -> int:
    config = load_settings(options)
    if config.data_dir == ":memory:":
        raise SetupError("demo data goes into a folder: name a fresh one with --data-dir")
    if compose.has_database(config):
        raise SetupError(f"{config.data_dir} is in use: demo data goes into a fresh folder, name one with --data-dir")
    seed = strict_json.read_integer(options.seed, param="--seed", low=0, high=2**31)
    requests = strict_json.read_integer(options.requests, param="--requests", low=1, high=MOST_REQUESTS)
    until_at = past_time(options.until, "--until") or SystemClock().now_at()

    async def run() -> DemoReport:
        async with compose.open_gateway(config, log=make_log(config)) as gateway:
            made = DemoData(store=gateway.store, shield=gateway.shield, seed=seed, until_at=until_at, requests=requests)
            return await made.write()

    report = anyio.run(run)
    if options.json:
        console.print_json(encode(report))
    else:
        console.print(
            f"{report.requests} requests of {report.agents} agents, {report.keys} keys and {report.providers} "
            f"providers; {report.blocks} blocked, {report.reviews} to review; {report.alerts} alerts, "
            f"{report.audit_events} audit events"
        )
        console.note(f"look at it with: gateway.pyz serve --data-dir {config.data_dir}")
    return OK


COMMANDS = (_demo_data,)
