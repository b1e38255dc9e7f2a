"""More than can be done at once, through the real process: what is shed, what is answered, what is left afterwards."""

import http.client
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from running import Answer, Served, start, tell, until

pytestmark = pytest.mark.slow

AT_ONCE = 8
CALLERS = 40


@pytest.fixture
def serve(archive: Path, upstream: str, tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Return what starts a gateway in front of the scripted upstream, and stop it afterwards."""
    served: list[Served] = []

    def serve(*flags: str) -> Served:
        one = start(archive, tmp_path / "data", "--upstream-url", f"{upstream}/v1", *flags)
        one.make_key()
        served.append(one)
        return one

    tell(upstream, "/__reset", {})
    yield serve
    tell(upstream, "/__reset", {})
    for one in served:
        assert one.process.stop() == 0
        assert not any("Traceback" in line for line in one.process.lines)


def check_shed(answers: list[Answer]) -> None:
    """Check that every answer but the good ones says that there is too much to do and when to come back."""
    for answer in answers:
        if answer.status != 200:
            assert (answer.status, answer.code) == (503, "overloaded")
            assert 1 <= int(answer.headers["retry-after"]) <= 60


def test_chats_beyond_the_bound_are_shed_while_the_others_wait_and_health_is_answered(
    serve: Callable[..., Served], upstream: str
) -> None:
    served = serve("--max-requests-in-work", str(AT_ONCE))
    tell(upstream, "/__mode", {"mode": "hold"})
    with ThreadPoolExecutor(CALLERS) as callers:
        waiting = [callers.submit(served.chat, "Good morning.") for _ in range(CALLERS)]
        while not sum(one.done() for one in waiting) >= CALLERS - AT_ONCE:  # the shed come back first
            assert served.ask("GET", "/api/v1/health").status == 200
            assert served.ask("GET", "/metrics").status == 200
        assert served.scan("Good morning.").status == 200, "what waits for a model keeps nobody from scanning"
        tell(upstream, "/__mode", {"mode": "normal"})
        answers = [one.result() for one in waiting]
    assert sum(answer.status == 200 for answer in answers) == AT_ONCE
    check_shed(answers)
    asked = [one for one in tell(upstream, "/__log") if one["path"].endswith("/chat/completions")]
    assert len(asked) == AT_ONCE, "nothing of what was shed went upstream"
    shed = re.search(r"^gateway_shed_total (\d+)", served.ask("GET", "/metrics").body.decode(), re.MULTILINE)
    assert shed is not None
    assert int(shed[1]) == CALLERS - AT_ONCE
    assert served.chat("Good morning.").status == 200


def test_scans_that_waited_too_long_for_their_turn_are_shed_and_none_fails(serve: Callable[..., Served]) -> None:
    served = serve("--max-wait-seconds", "0.01")
    headers = {"X-Service-Key": served.key, "Content-Type": "application/json"}
    with ExitStack() as opened:
        callers = [http.client.HTTPConnection("127.0.0.1", served.port, timeout=30) for _ in range(AT_ONCE * 4)]
        for caller in callers:
            opened.callback(caller.close)
            caller.request("GET", "/api/v1/health", headers=headers)
            assert answer_of(caller).status == 200
        os.kill(served.process.popen.pid, signal.SIGSTOP)  # so that they all come at once
        try:
            for number, caller in enumerate(callers):
                text = f"good morning to everybody in harbour {number}. " * 250
                caller.request("POST", "/api/v1/shield/scan", json.dumps({"text": text}), headers)
        finally:
            os.kill(served.process.popen.pid, signal.SIGCONT)
        answers = [answer_of(caller) for caller in callers]
    check_shed(answers)
    assert {200, 503} == {answer.status for answer in answers}
    assert served.ask("GET", "/api/v1/health").status == 200


def test_long_texts_that_no_thread_is_free_for_are_shed_and_short_ones_are_scanned(
    serve: Callable[..., Served],
) -> None:
    served = serve("--max-wait-seconds", "0.4")  # a busy host keeps short ones waiting as well

    def scan(number: int) -> Answer:
        return served.scan(f"good morning to everybody in harbour {number}, quay {number * 7}. " * 8_000)

    with ThreadPoolExecutor(CALLERS) as callers:
        waiting = [callers.submit(scan, number) for number in range(CALLERS)]
        while not any(one.done() for one in waiting):
            assert served.scan("Good morning.").status == 200
        answers = [one.result() for one in waiting]
    check_shed(answers)
    assert {200, 503} == {answer.status for answer in answers}
    assert served.scan("good morning to everybody in harbour 99. " * 8_000).status == 200


def test_who_leaves_while_a_model_thinks_gives_its_place_to_the_next(
    serve: Callable[..., Served], upstream: str
) -> None:
    served = serve("--max-requests-in-work", "1")
    for _ in range(2):  # the very first chat of the process, and one of those that follow
        tell(upstream, "/__mode", {"mode": "hang"})
        ask_and_leave(served, upstream)
        tell(upstream, "/__mode", {"mode": "normal"})
        until(lambda: served.chat("Good morning.").status == 200)
    failed = served.ask("GET", "/api/v1/audit?action=chat_failed").json["data"]
    assert [event["reason"] for event in failed] == ["client_gone"] * 2


def test_what_a_budget_pays_for_is_awaited_and_counted_as_it_is_though_its_caller_left(
    serve: Callable[..., Served], upstream: str
) -> None:
    served = serve()
    assert served.chat("Good morning.").status == 200
    made = served.ask("POST", "/api/budgets", {"window": "month", "limit": 100_000, "unit": "tokens"}, key=None)
    assert made.status == 201, made.body

    def stands() -> dict:
        return served.ask("GET", "/api/budgets", key=None).json["data"][0]

    tell(upstream, "/__mode", {"mode": "hold"})
    ask_and_leave(served, upstream)
    time.sleep(2.5)
    assert stands()["reserved"] > 0
    tell(upstream, "/__mode", {"mode": "normal"})
    until(lambda: not stands()["reserved"])
    spent = stands()["spent"]
    assert spent > 0
    assert served.chat("Good morning.").status == 200
    assert stands()["spent"] == 2 * spent


def ask_and_leave(served: Served, upstream: str) -> None:
    """Send a chat and close the connection when it has come to the upstream."""
    known = len(tell(upstream, "/__log"))
    caller = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    request = {"model": "test-model", "messages": [{"role": "user", "content": "Good morning."}]}
    headers = {"X-Service-Key": served.key, "Content-Type": "application/json"}
    caller.request("POST", "/api/v1/chat/completions", json.dumps(request), headers)
    try:
        until(lambda: len(tell(upstream, "/__log")) > known)
    finally:
        caller.close()


def answer_of(caller: http.client.HTTPConnection) -> Answer:
    """Read one answer."""
    reply = caller.getresponse()
    return Answer(reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read())
