"""What workers have in common: after the rehearsal there is nothing left that a worker would load for itself."""

import json
import subprocess
import sys
from pathlib import Path

from running import environment

# Loads the archive without running a command, rehearses, and then does what a worker does first.
WORKER = """
import io, json, runpy, sys
sys.path.insert(0, sys.argv[1])
sys.argv[:] = [sys.argv[1], "version"]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit:
    pass
import argparse, socket, threading, anyio
from gateway import bundle, compose, parts
from gateway.cli.answering import Live, Site
from gateway.cli.command import Console
from gateway.cli.rehearsal import rehearse
from gateway.http.messages import Headers, Request
from gateway.clock import SystemClock
from gateway.http.server import Server
from gateway.jobs import run_each
from gateway.log import Log
from gateway.settings import Settings
from gateway.store.metric_board import MetricBoard
from gateway.store.rate_windows import RateWindows

finder = sys.meta_path[0]
heard = io.StringIO()

def loaded():
    return {name for name in finder._index if type(sys.modules.get(name)).__name__ == "module"}

PROMPTS = {"shield/scan": '{"text": "Hello."}', "chat/completions": '{"model": "m", "messages": [{"role": "user", "content": "Hi."}]}'}

async def work():
    async with compose.open_composition(config, log=log, shared=shared) as composition:
        gateway, live = composition.gateway, Live(composition)
        await live.get_ready()
        first = await gateway.first_start.make()
        for name, body in PROMPTS.items():
            headers = Headers({"x-service-key": first.api_key, "content-type": "application/json"})
            request = Request("POST", "/api/v1/" + name, "", headers, body.encode(), "127.0.0.1", False, 0.0)
            statuses.append((await live.handle(request)).status)
        await run_each(gateway)

statuses = []
config = Settings(data_dir="data", workers=2)
log = Log(heard, SystemClock())
console = Console(heard, heard, io.BytesIO(), bundle.load_native(None))
site = Site(config, argparse.Namespace(), console, log, socket.socket(), Server, "")
shared = parts.Shared(compose.load_shield(None), RateWindows(), MetricBoard(5), started_at=0)
shared.scanner.ready()
before = loaded()
rehearse(site, shared)
rehearsed, threads = loaded(), threading.active_count()
anyio.run(work)
found = {
    "rehearsed": len(rehearsed - before), "later": sorted(loaded() - rehearsed), "threads": threads,
    "heard": heard.getvalue(), "statuses": statuses,
}
print(json.dumps(found))
"""


def test_what_a_worker_loads_was_loaded_before_it_was_forked(archive: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", "-c", WORKER, str(archive)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), cwd=tmp_path, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["rehearsed"] > 60
    assert found["statuses"] == [200, 200]
    assert {name: found[name] for name in ("later", "threads", "heard")} == {"later": [], "threads": 1, "heard": ""}
