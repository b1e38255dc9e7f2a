"""Several workers on one port: one rate limit, one authority, one chain; whoever dies is replaced, nothing is lost."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from running import ALL_SCOPES, Process, Served, command, make_key, run, start, tell, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="who has which connection is read in /proc"),
]

WORKERS = 4
ATTACK = "please open the pod bay doors now"


def rule(phrase: str) -> dict[str, object]:
    return {
        "id": "pod-bay",
        "name": "Pod bay",
        "category": "injection",
        "severity": "critical",
        "confidence": 0.95,
        "description": "Asks for the doors.",
        "direction": ["inbound", "outbound"],
        "pattern": phrase,
        "standards": ["OWASP LLM01:2025"],
        "match": [phrase],
        "pass": [phrase[:-3] + "zzz"],
    }


def write_rules(path: Path, phrase: str) -> Path:
    path.write_text(json.dumps({"version": 1, "tables": {}, "rules": [rule(phrase)]}))
    return path


@dataclass
class Group(Served):
    """A gateway with several workers."""

    @property
    def supervisor(self) -> int:
        return self.process.popen.pid

    def workers(self) -> list[int]:
        pids = Path(f"/proc/{self.supervisor}/task/{self.supervisor}/children").read_text().split()
        return [int(pid) for pid in pids]

    def connection_to(self, worker: int) -> http.client.HTTPConnection:
        """Open a connection that this worker has: the others are held meanwhile."""
        others = [pid for pid in self.workers() if pid != worker]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
            assert status(connection, None, "/api/v1/health") == 200
            return connection
        finally:
            for pid in others:
                os.kill(pid, signal.SIGCONT)

    def kill_all(self) -> None:
        """End the whole group at once, as a power cut would."""
        pids = [self.supervisor, *self.workers()]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.process.stop()
        until(lambda: not any(is_running(pid) for pid in pids))


def is_running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def status(connection: http.client.HTTPConnection, key: str | None, path: str = "/api/v1/models") -> int:
    connection.request("GET", path, headers={"X-Service-Key": key} if key else {})
    reply = connection.getresponse()
    reply.read()
    return reply.status


def start_group(archive: Path, data_dir: Path, rules: Path, *flags: str, **more: str) -> Group:
    served = start(archive, data_dir, "--workers", str(WORKERS), "--rules", str(rules), *flags, **more)
    group = Group(served.process, served.port, served.key, data_dir)
    assert len(group.workers()) == WORKERS
    return group


def recorded(served: Served) -> set[str]:
    """Return the request ids of all audit events."""
    found, cursor = set(), ""
    while cursor is not None:
        page = served.ask("GET", f"/api/v1/audit?limit=1000{cursor and '&cursor='}{cursor}").json
        if page.get("error", {}).get("code") == "overloaded":
            continue  # a group that has just started on a busy machine sheds
        found |= {event["request_id"] for event in page["data"]}
        cursor = page["page"]["next"]
    return found


def assert_chain_is_whole(data_dir: Path) -> None:
    done = command("audit", "verify", "--data-dir", data_dir)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rules(tmp_path_factory.mktemp("rules") / "rules.json", "pod bay doors")


@pytest.fixture(scope="module")
def group(archive: Path, rules: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    group = start_group(archive, tmp_path_factory.mktemp("group"), rules)
    group.key = make_key(group.data_dir, ALL_SCOPES)
    yield group
    assert group.process.stop() == 0
    assert not any("Traceback" in line for line in group.process.lines)


@dataclass
class Load:
    """Clients that send attacks, one request after the other, and note the ids of those that were answered 200."""

    group: Group
    clients: int
    acknowledged: list[str] = field(default_factory=list)
    other: list[int] = field(default_factory=list)
    lost: int = 0

    def __enter__(self) -> "Load":
        self._is_over = False
        self._threads = [threading.Thread(target=self._run) for _ in range(self.clients)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        body = json.dumps({"text": ATTACK})
        headers = {"X-Service-Key": self.group.key, "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.group.port, timeout=20)
        while not self._is_over:
            try:
                connection.request("POST", "/api/v1/shield/scan", body, headers)
                reply = connection.getresponse()
                reply.read()
            except (OSError, http.client.HTTPException):
                self.lost += 1
                connection.close()
                continue
            if reply.status == 200:
                self.acknowledged.append(reply.headers["x-request-id"])
            else:
                self.other.append(reply.status)
        connection.close()


def test_the_ready_line_is_printed_once_and_the_start_is_noted_once(group: Group) -> None:
    assert sum("listening on" in line for line in group.process.lines) == 1
    events = group.ask("GET", "/api/v1/audit?action=gateway_started").json["data"]
    assert [event["details"]["workers"] for event in events] == [WORKERS]


def test_workers_share_one_exact_rate_limit_under_concurrent_load(group: Group) -> None:
    limit = 200
    key = make_key(group.data_dir, ALL_SCOPES, limit)
    connections = [group.connection_to(worker) for worker in group.workers() for _ in range(2)]

    def send(connection: http.client.HTTPConnection) -> list[int]:
        return [status(connection, key) for _ in range(80)]

    with ThreadPoolExecutor(len(connections)) as pool:
        answers = [one for part in pool.map(send, connections) for one in part]
    assert answers.count(200) == limit
    assert answers.count(429) == len(answers) - limit
    assert all(status(connection, key) == 429 for connection in connections)
    for connection in connections:
        connection.close()


def test_a_key_revoked_on_the_command_line_is_refused_by_every_worker(group: Group, archive: Path) -> None:
    key = make_key(group.data_dir, ALL_SCOPES)
    connections = [group.connection_to(worker) for worker in group.workers()]
    assert [status(connection, key) for connection in connections] == [200] * WORKERS
    assert run(archive, "keys", "revoke", key[:10], "--data-dir", group.data_dir).returncode == 0
    assert [status(connection, key) for connection in connections] == [403] * WORKERS
    for connection in connections:
        connection.close()


def test_every_worker_tells_the_age_of_the_group_and_the_sum_of_what_all_counted(group: Group) -> None:
    """Asks for a path that no other test of this group asks for: what they counted may still be on its way."""
    connections = [group.connection_to(worker) for worker in group.workers()]

    def get(connection: http.client.HTTPConnection, path: str) -> str:
        connection.request("GET", path)
        return connection.getresponse().read().decode()

    def told(connection: http.client.HTTPConnection) -> tuple[str, int]:
        text = get(connection, "/metrics")
        age = re.search(r"^gateway_start_time_seconds (.*)$", text, re.MULTILINE)
        count = re.search(r'^gateway_requests_total.*operation="openapi".*"200"} (\d+)$', text, re.MULTILINE)
        assert age
        return age[1], int(count[1]) if count else 0

    try:
        age, before = told(connections[0])
        assert before == 0
        for connection in connections:
            get(connection, "/api/v1/openapi.json")
        until(lambda: [told(connection) for connection in connections] == [(age, WORKERS)] * WORKERS)
    finally:
        for connection in connections:
            connection.close()


def test_a_killed_worker_is_replaced_and_no_acknowledged_event_is_lost(group: Group) -> None:
    before = group.workers()
    with Load(group, clients=8) as load:
        until(lambda: len(load.acknowledged) > 100)
        os.kill(before[1], signal.SIGKILL)
        until(lambda: len(group.workers()) == WORKERS and before[1] not in group.workers())
        count = len(load.acknowledged)
        until(lambda: len(load.acknowledged) > count + 100)
    assert load.other == []
    assert any("worker_ended" in line for line in group.process.lines)
    assert set(load.acknowledged) - recorded(group) == set()
    assert_chain_is_whole(group.data_dir)


def test_what_the_first_worker_does_for_all_is_done_by_whoever_takes_its_place(group: Group) -> None:
    before = group.workers()
    os.kill(before[0], signal.SIGKILL)
    until(lambda: len(group.workers()) == WORKERS and before[0] not in group.workers())
    output = {"name": "file", "kind": "jsonl", "target": "events.jsonl", "kinds": ["audit"], "min_severity": "high"}
    made = group.ask("POST", "/api/event-outputs", output, key=None)
    assert made.status == 201
    written = group.data_dir / "events" / "events.jsonl"
    request_id = group.scan(ATTACK).headers["x-request-id"]
    until(lambda: written.exists() and request_id in written.read_text())


def test_sigterm_answers_a_hundred_requests_in_flight(
    archive: Path, rules: Path, upstream: str, tmp_path: Path
) -> None:
    group = start_group(archive, tmp_path / "data", rules, "--upstream-url", f"{upstream}/v1")
    group.key = make_key(group.data_dir, ALL_SCOPES)
    tell(upstream, "/__reset", {})
    tell(upstream, "/__mode", {"mode": "slow", "seconds": 3})
    with ThreadPoolExecutor(100) as pool:
        answers = [pool.submit(group.chat, "Hello") for _ in range(100)]
        until(lambda: len(tell(upstream, "/__log")) >= 100)
        group.process.popen.send_signal(signal.SIGTERM)
        assert [answer.result().status for answer in answers] == [200] * 100
    tell(upstream, "/__reset", {})
    assert group.process.stop() == 0
    assert_chain_is_whole(group.data_dir)


@pytest.mark.parametrize(
    "counts",
    [(5, 20, 150, 300), pytest.param((80, 220, *range(5, 80, 5)), marks=pytest.mark.slow)],
    ids=["some", "many"],
)
def test_the_whole_group_killed_under_load_loses_nothing_that_was_acknowledged(
    archive: Path, rules: Path, tmp_path: Path, counts: tuple[int, ...]
) -> None:
    data_dir = tmp_path / "data"
    key = make_key(data_dir, ALL_SCOPES)
    acknowledged: list[str] = []
    for count in counts:
        group = start_group(archive, data_dir, rules)
        group.key = key
        load = Load(group, clients=8)
        with load:
            until(lambda load=load, count=count: len(load.acknowledged) > count)
            group.kill_all()
        assert load.other == []
        acknowledged += load.acknowledged
    group = start_group(archive, data_dir, rules)
    group.key = key
    assert set(acknowledged) - recorded(group) == set()
    assert group.process.stop() == 0
    assert_chain_is_whole(data_dir)


def test_sighup_brings_new_rules_to_every_worker_and_a_bad_file_keeps_the_old(archive: Path, tmp_path: Path) -> None:
    rules = write_rules(tmp_path / "rules.json", "pod bay doors")
    group = start_group(archive, tmp_path / "data", rules)
    group.key = make_key(group.data_dir, ALL_SCOPES)
    old = group.workers()
    assert group.scan(ATTACK).json["data"]["verdict"] == "BLOCK"
    write_rules(rules, "airlock hatches")
    with Load(group, clients=4) as load:
        until(lambda: len(load.acknowledged) > 20)
        os.kill(group.supervisor, signal.SIGHUP)
        until(lambda: len(group.workers()) == WORKERS and not set(old) & set(group.workers()))
    assert load.other == []
    new = group.workers()
    rules.write_text("no rules at all")
    os.kill(group.supervisor, signal.SIGHUP)
    until(lambda: any("reload_refused" in line for line in group.process.lines))
    assert group.workers() == new
    for worker in new:
        connection = group.connection_to(worker)
        verdicts = []
        for text in (ATTACK, "open the airlock hatches"):
            headers = {"X-Service-Key": group.key, "Content-Type": "application/json"}
            connection.request("POST", "/api/v1/shield/scan", json.dumps({"text": text}), headers)
            verdicts.append(json.loads(connection.getresponse().read())["data"]["verdict"])
        connection.close()
        assert verdicts == ["ALLOW", "BLOCK"]
    events = group.ask("GET", "/api/v1/audit?action=gateway_reloaded").json["data"]
    assert len(events) == 1
    assert group.process.stop() == 0


def test_workers_whose_supervisor_was_killed_end_by_themselves(archive: Path, rules: Path, tmp_path: Path) -> None:
    group = start_group(archive, tmp_path / "data", rules)
    workers = group.workers()
    os.kill(group.supervisor, signal.SIGKILL)
    until(lambda: not any(is_running(pid) for pid in workers))
    group.process.stop()
    again = start(archive, tmp_path / "data", "--rules", str(rules), "--port", str(group.port))
    assert again.process.stop() == 0


def test_workers_that_cannot_start_end_the_program_in_one_line(archive: Path, rules: Path, tmp_path: Path) -> None:
    (tmp_path / "gateway.db").write_bytes(b"this is no database at all" * 100)
    done = run(archive, "serve", "--port", "0", "--workers", "3", "--rules", str(rules), "--data-dir", str(tmp_path))
    assert done.returncode not in (0, -signal.SIGKILL)
    assert len(done.stderr.strip().splitlines()) == 1
    memory = run(archive, "serve", "--port", "0", "--workers", "3", "--data-dir", ":memory:")
    assert (memory.returncode, len(memory.stderr.strip().splitlines())) == (2, 1)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the host has no CPU affinity")
def test_each_worker_keeps_to_a_cpu_where_there_is_one_for_each(archive: Path, rules: Path, tmp_path: Path) -> None:
    cpus = os.sched_getaffinity(0)
    if len(cpus) < 2:
        pytest.skip("there is one CPU")

    def used(workers: int, *flags: str, is_hurt: bool = False) -> list[set[int]]:
        """Return the CPUs that each thread of each worker may run on."""
        served = start(archive, tmp_path / "data", "--workers", str(workers), "--rules", str(rules), *flags)
        group = Group(served.process, served.port, served.key, tmp_path / "data")
        if is_hurt:
            hurt = group.workers()[-1]
            os.kill(hurt, signal.SIGKILL)
            until(lambda: hurt not in group.workers() and len(group.workers()) == workers)
            until(lambda: all(len(list(Path(f"/proc/{pid}/task").iterdir())) > 1 for pid in group.workers()))
        threads = [int(task.name) for pid in group.workers() for task in Path(f"/proc/{pid}/task").iterdir()]
        assert len(threads) > workers
        found = [os.sched_getaffinity(thread) for thread in threads]
        assert os.sched_getaffinity(group.supervisor) == cpus
        assert group.process.stop() == 0
        return found

    for is_hurt in (False, True):
        kept = used(len(cpus), is_hurt=is_hurt)
        assert all(len(one) == 1 for one in kept)
        assert set.union(*kept) == cpus
    assert all(one == cpus for one in used(len(cpus), "--worker-cpu-affinity", "off"))
    assert all(one == cpus for one in used(len(cpus) + 1))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_interrupt_during_the_start_leaves_no_traceback(
    archive: Path, rules: Path, tmp_path: Path, workers: str
) -> None:
    for milliseconds in (0, 100, 200, 400):
        words = [sys.executable, "-I", str(archive), "serve", "--port", "0", "--workers", workers]
        words += ["--rules", str(rules), "--data-dir", str(tmp_path / "data")]
        popen = subprocess.Popen(words, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, cwd="/")
        process = Process(popen)
        until(lambda pid=popen.pid: has_left_the_interpreter(pid))
        time.sleep(milliseconds / 1000)  # the moment is the thing tested
        popen.send_signal(signal.SIGINT)
        code = popen.wait(20)
        process.stop()
        assert code in (0, 130, -signal.SIGINT), process.lines
        assert not any("Traceback" in line for line in process.lines), process.lines


def has_left_the_interpreter(pid: int) -> bool:
    """Tell whether our first lines have run: they see to the hang-up, which Python itself never does."""
    masks = re.findall(r"^Sig(?:Blk|Ign|Cgt):\s*([0-9a-f]+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return any(int(mask, 16) >> (signal.SIGHUP - 1) & 1 for mask in masks)
