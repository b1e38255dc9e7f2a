"""What workers put up for each other: read whole, kept when they end, and counted once."""

import os
import signal
from collections.abc import Callable

from gateway.metrics import Metrics
from gateway.store.metric_board import MetricBoard


def child(work: Callable[[], object]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    finally:
        os._exit(0)


def scans(metrics: Metrics) -> str:
    return next(line for line in metrics.render().splitlines() if line.startswith("gateway_scans_total{"))


def test_every_worker_tells_the_sum_of_all() -> None:
    board = MetricBoard(4)
    reading, writing = os.pipe()

    def work() -> None:
        metrics = Metrics(board=board)
        metrics.count("gateway_scans_total", 5, source="api", verdict="ALLOW")
        metrics.observe("gateway_request_seconds", 0.003, operation="x")
        metrics.publish()
        os.write(writing, b"x")
        signal.pause()

    pids = [child(work) for _ in range(3)]
    assert b"".join(os.read(reading, 1) for _ in pids) == b"xxx"
    own = Metrics(board=board)
    own.count("gateway_scans_total", 2, source="api", verdict="ALLOW")
    own.gauge("gateway_start_time_seconds", 7)
    assert scans(own).endswith(" 17")
    assert 'gateway_request_seconds_count{operation="x"} 3' in own.render()
    assert "gateway_start_time_seconds 7\n" in own.render()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert scans(own).endswith(" 17")
    os.close(reading)
    os.close(writing)


def test_who_comes_after_goes_on_from_what_the_one_before_put_up() -> None:
    board = MetricBoard(1)

    def work() -> None:
        metrics = Metrics(board=board)
        metrics.count("gateway_scans_total", 5, source="api", verdict="ALLOW")
        metrics.publish()

    for _ in range(2):
        os.waitpid(child(work), 0)
    metrics = Metrics(board=board)
    assert scans(metrics).endswith(" 10")
    metrics.publish()
    assert scans(metrics).endswith(" 10")


def test_a_state_too_long_is_not_put_up_and_a_process_too_many_counts_for_itself() -> None:
    board = MetricBoard(1)
    os.waitpid(child(lambda: (board.claim(), board.publish(b"kept"))), 0)
    assert board.claim() == b"kept"
    assert not board.publish(b"x" * 1_000_000)
    assert board.others() == []
    reading, writing = os.pipe()

    def work() -> None:
        board._own = -1
        os.write(writing, repr((board.claim(), board.publish(b"x"), board.others())).encode())

    os.waitpid(child(work), 0)
    assert os.read(reading, 100) == b"(b'', False, [b'kept'])"
    os.close(reading)
    os.close(writing)
