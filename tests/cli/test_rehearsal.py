"""What is done before workers are forked: it leaves no thread, no file and no word, and no fault of it ends a start."""

import argparse
import gc
import io
import os
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from gateway import bundle, compose, parts
from gateway.cli.answering import Site
from gateway.cli.command import Console
from gateway.cli.rehearsal import rehearse
from gateway.cli.serve import Group
from gateway.clock import SystemClock
from gateway.errors import SetupError
from gateway.http.server import Server
from gateway.log import Log
from gateway.settings import Settings
from gateway.store.metric_board import MetricBoard
from gateway.store.rate_windows import RateWindows


def make(folder: Path, stream: io.StringIO) -> tuple[Site, parts.Shared]:
    """Return what a group has before it forks; nobody listens."""
    config = Settings(data_dir=str(folder), workers=2)
    log = Log(stream, SystemClock())
    site = Site(
        config,
        argparse.Namespace(),
        Console(stream, stream, io.BytesIO(), bundle.load_native("0")),
        log,
        socket.socket(),
        Server,
        "",
    )
    return site, parts.Shared(compose.load_shield(None), RateWindows(), MetricBoard(5), started_at=0)


def test_workers_know_together_what_is_clean_and_after_a_reload_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Group, "get_ready", lambda group: None)  # which lays out the memory of its whole process
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    site, _ = make(tmp_path, io.StringIO())
    group = Group(site)
    before = group.shared.clean
    assert before is not None
    assert group.reload()
    after = group.shared.clean
    assert after is not None
    assert before.secret != after.secret
    text = bytes(range(16))
    before.add(text)
    assert not after.has(text)
    site.close()


def test_a_rehearsal_leaves_no_thread_no_file_and_no_word(tmp_path: Path) -> None:
    before, stream = threading.active_count(), io.StringIO()
    site, shared = make(tmp_path / "data", stream)
    rehearse(site, shared)
    assert threading.active_count() <= before  # one of a test before may have ended meanwhile
    assert not list(tmp_path.iterdir())
    assert stream.getvalue() == ""
    assert not shared.board.others()
    site.close()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are counted by a folder of Linux")
def test_a_rehearsal_before_each_reload_holds_nothing_open(tmp_path: Path) -> None:
    site, shared = make(tmp_path / "data", io.StringIO())
    rehearse(site, shared)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        rehearse(site, shared)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before
    site.close()


def test_a_rehearsal_asks_no_upstream(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        upstream.setblocking(False)
        site, shared = make(tmp_path / "data", io.StringIO())
        url = f"http://127.0.0.1:{upstream.getsockname()[1]}/v1"
        config = replace(site.config, upstream_url=url, upstream_first_byte_seconds=0.01)
        rehearse(replace(site, config=config), shared)
        with pytest.raises(BlockingIOError):
            upstream.accept()
    site.close()


@pytest.mark.parametrize("fault", [SetupError("There is no room."), RuntimeError("No thread can be started.")])
def test_a_fault_of_a_rehearsal_is_left_to_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    asked: list[str] = []

    def refuse(path: str) -> None:
        asked.append(path)
        raise fault

    monkeypatch.setattr(compose, "make_data_dir", refuse)
    site, shared = make(tmp_path / "data", io.StringIO())
    rehearse(site, shared)
    assert asked == [":memory:"]
    site.close()
