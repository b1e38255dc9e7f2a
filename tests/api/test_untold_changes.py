"""A change of authority whose process was killed before it told the others: it holds all the same within seconds."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from open_site import ATTACK, Site, open_site

KILLED_AFTER_THE_COMMIT = """
import os, signal, sys
from gateway.bundle import NativeReport
from gateway.cli import main as cli
from gateway.store.generation import Generation
Generation.bump = lambda self: os.kill(os.getpid(), signal.SIGKILL)
cli.run(cli.read(sys.argv[1:]), NativeReport("python", None, ()))
"""


def run_killed(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-c", KILLED_AFTER_THE_COMMIT, *arguments, "--data-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr


async def outcome(site: Site, key: str, content: str) -> int:
    return int((await site.chat(key, content))["status"])


@pytest.mark.sqlite
async def test_what_a_killed_command_changed_holds_for_keys_in_use_within_seconds(tmp_path: Path) -> None:
    async with (
        open_site(tmp_path, data_dir=str(tmp_path / "data")) as site,
        open_site(tmp_path, data_dir=str(tmp_path / "data")) as other,
    ):
        await site.make("/api/policies", name="lab", mode="observe")
        key = (await site.key(policy="lab"))["key"]
        workers = (site, other)
        for worker in workers:
            assert [await outcome(worker, key, text) for text in (ATTACK, "hi")] == [200, 200]
        for arguments, content, wanted in (
            (("policies", "update", "lab", "--mode", "block"), ATTACK, 400),
            (("access", "add", "--list", "deny", "--type", "MODEL", "--value", "echo"), "hi", 403),
        ):
            await anyio.to_thread.run_sync(run_killed, tmp_path / "data", *arguments)
            with anyio.fail_after(4):
                for worker in workers:
                    while await outcome(worker, key, content) != wanted:  # noqa: ASYNC110 - seen from outside alone
                        await anyio.sleep(0.1)


async def test_a_rule_switched_off_by_another_process_holds_though_the_shared_counter_is_gone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with open_site(tmp_path, data_dir=str(data)) as site:
        key = (await site.key())["key"]
        assert (await site.scan(key))["detections"]
        os.unlink(data / "gateway.db.generation")
        async with open_site(tmp_path, data_dir=str(data)) as other:
            changed = await other.ask(
                "PATCH", "/api/shield/rules", {"rule": "say-please", "enabled": False, "reason": "noisy"}
            )
            assert changed["status"] == 200, changed
        with anyio.fail_after(4):
            while (await site.scan(key))["detections"]:  # noqa: ASYNC110 - seen from outside alone
                await anyio.sleep(0.1)
