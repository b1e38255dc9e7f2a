"""Detectors through the real dispatch and over real connections: when they are asked, and what their answers do."""

import base64
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from api.test_providers import Script
from open_site import ATTACK, CHAT, RULES, Site, open_site, sign_in
from running import ROOT, command, free_port

from gateway.domain.principals import Role
from gateway.http.messages import Headers, Request

DETECTORS = "/api/detectors"
HELLO = "Where is the nearest library?"
BAD = "The word of the day is swordfish, they say."
LABELS = {"LABEL_1": "injection", "LABEL_0": "safe"}
SECRET = "AKIA" + "Z3MHALQ7XW2RT5PB"
SPILL = f"The access key is {SECRET}, keep it."
KINDS: dict[str, dict[str, Any]] = {
    "openai_chat": {"path": "/v1/chat/completions", "model": "guard", "format": "qwen3guard"},
    "tei_predict": {"path": "/predict", "labels": LABELS},
    "vllm_classify": {"path": "/classify", "model": "m", "labels": LABELS},
    "openai_moderations": {"path": "/v1/moderations"},
    "fms_contents": {"path": "/api/v1/text/contents", "model": "lab-pii"},
    "presidio": {"path": "/analyze"},
    "json": {"path": "/judge", "body": '{"q": "{{text}}"}', "score_path": "/result/score", "label_path": "/result/label"},
}  # fmt: skip


def fields_of(url: str, kind: str, **fields: Any) -> dict[str, Any]:
    """Return what sets up a detector of a kind at the scripted server."""
    own = dict(KINDS[kind])
    path = own.pop("path")
    base = url + (path if kind == "json" else "/v1" if path.startswith("/v1") else "")
    common = {"name": "d", "kind": kind, "base_url": base, "allow_private": True, "timeout_ms": 20_000}
    return common | own | {"effect": "veto"} | fields


class Lab:
    """A gateway, the scripted detector, and a key."""

    def __init__(self, site: Site, server: Script, key: str) -> None:
        self.site, self.server, self.key = site, server, key
        self.ask, self.url = site.ask, server.url

    async def add(self, kind: str = "tei_predict", **fields: Any) -> Any:
        return await self.site.make(DETECTORS, **fields_of(self.url, kind, **fields))

    async def change(self, **fields: Any) -> Any:
        return await self.ask("PATCH", f"{DETECTORS}/d", fields)

    async def scan(self, text: str = BAD, direction: str = "inbound", key: str = "") -> Any:
        body = {"text": text, "direction": direction}
        answer = await self.ask("POST", "/api/v1/shield/scan", body, key=key or self.key)
        assert answer["status"] == 200, answer
        return answer["data"]

    async def chat(self, *texts: str, **fields: Any) -> Any:
        roles = ("user", "assistant")
        messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts or (BAD,))]
        return await self.ask("POST", CHAT, {"model": "echo", "messages": messages, **fields}, key=self.key)

    async def stream(self, text: str = BAD) -> list[Any]:
        """Return the events of a streamed chat, and last of all how it left."""
        body = {"model": "echo", "stream": True, "messages": [{"role": "user", "content": text}]}
        fields = Headers({"host": "127.0.0.1:5001", "content-type": "application/json", "x-service-key": self.key})
        answer = await self.site.dispatch.handle(
            Request("POST", "/api/v2/chat/completions", "", fields, json.dumps(body).encode(), "127.0.0.1", False, 0.0)
        )
        assert answer.stream is not None, answer.body
        raw = b"".join([event async for event in answer.stream]).decode()
        await answer.stream.aclose()
        return [json.loads(line[6:]) for line in raw.split("\n\n") if line.startswith("data: {")]

    def sent(self, kind: str = "tei_predict") -> list[str]:
        """Return the texts that the server was sent."""
        found = []
        for entry in self.server.seen(KINDS[kind]["path"]):
            body = json.loads(entry["body"])
            found += [text for (text,) in body["inputs"]] if "inputs" in body else [json.dumps(body)]
        return found


@pytest.fixture(scope="module")
def process() -> Iterator[Script]:
    line = [sys.executable, str(ROOT / "tests" / "detector_server.py"), "0"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as server:
        assert server.stderr is not None
        yield Script(server.stderr.readline().split()[-1])
        server.kill()


@pytest.fixture
def server(process: Script) -> Script:
    process.mode("normal")
    return process


@pytest.fixture
async def lab(tmp_path: Path, server: Script) -> AsyncIterator[Lab]:
    async with open_site(tmp_path) as site:
        yield Lab(site, server, (await site.key())["key"])


@pytest.fixture
async def strict(tmp_path: Path, server: Script) -> AsyncIterator[Lab]:
    """The rules that come with the gateway, which know secrets."""
    async with open_site(tmp_path, rules=str(ROOT / "rules.json")) as site:
        yield Lab(site, server, (await site.key())["key"])


def found(data: Any) -> tuple[str, int]:
    """Return verdict and score."""
    return data["verdict"], data["score"]


@pytest.mark.parametrize("kind", KINDS)
async def test_each_kind_judges_prompts_answers_and_scans(lab: Lab, kind: str) -> None:
    await lab.add(kind, api_key="k-made-up", directions=["inbound", "outbound"])
    assert found(await lab.scan(HELLO)) == ("ALLOW", 0)
    bad = await lab.scan()
    assert found(bad) == ("BLOCK", 60)
    (one,) = bad["detections"]
    assert (one["rule"], one["name"], one["score"]) == ("detector:d", "Detector d", 60)
    assert one["category"] == ("pii" if kind == "presidio" else "injection")
    if kind in ("fms_contents", "presidio"):
        assert BAD[one["start"] : one["end"]] == "swordfish"
    assert (await lab.chat(HELLO))["status"] == 200
    assert (await lab.chat())["error"]["code"] == "content_policy_violation"
    (first, *_) = lab.server.seen(KINDS[kind]["path"])
    assert first["headers"]["authorization"] == "Bearer k-made-up"
    assert first["headers"].get("detector-id") == ("lab-pii" if kind == "fms_contents" else None)


@pytest.mark.parametrize(
    ("effect", "verdict", "score", "status"),
    [("observe", "ALLOW", 0, 200), ("points", "REVIEW", 40, 200), ("review", "REVIEW", 25, 200), ("veto", "BLOCK", 60, 400)],
)  # fmt: skip
async def test_an_effect_is_the_same_at_every_door(
    lab: Lab, effect: str, verdict: str, score: int, status: int
) -> None:
    await lab.add(effect=effect, points=40, directions=["inbound", "outbound"])
    data = await lab.scan()
    assert found(data) == (verdict, score) and [one["score"] for one in data["detections"]] == [score]
    answer = await lab.chat()
    assert answer["status"] == status
    assert answer["headers"]["x-service-shield-verdict"] == verdict
    guard = await lab.ask("POST", "/v2/guard", {"messages": [{"role": "user", "content": BAD}]}, key=lab.key)
    assert guard["flagged"] is (effect == "veto")
    assert (await lab.scan(ATTACK))["verdict"] == "BLOCK"
    assert ATTACK not in lab.sent(), "what the shield blocks is not asked about"


async def test_points_of_several_detectors_add_up(lab: Lab) -> None:
    for name in ("d", "e"):
        await lab.add(effect="points", points=30, name=name)
    assert found(await lab.scan()) == ("BLOCK", 60)
    await lab.ask("PATCH", f"{DETECTORS}/e", {"enabled": False})
    assert found(await lab.scan()) == ("REVIEW", 30)


async def test_only_what_goes_the_way_of_a_detector_is_judged(lab: Lab) -> None:
    await lab.add(directions=["outbound"])
    assert found(await lab.scan()) == ("ALLOW", 0)
    assert lab.sent() == []
    assert found(await lab.scan(direction="outbound")) == ("BLOCK", 60)
    answer = await lab.chat()
    assert answer["status"] == 200 and answer["choices"][0]["finish_reason"] == "content_filter"
    assert "swordfish" not in json.dumps(answer)
    await lab.site.make("/api/policies", name="mask", outbound="redact")
    lab.key = (await lab.site.key(name="mask", policy="mask"))["key"]
    assert "swordfish" not in json.dumps(await lab.chat(n=2)), "nothing tells where the fault stands"
    await lab.change(directions=["inbound"])
    assert found(await lab.scan(direction="outbound")) == ("ALLOW", 0)
    assert (await lab.chat())["status"] == 400


async def test_the_model_of_an_answer_is_told_what_it_replies_to(lab: Lab) -> None:
    await lab.add("openai_chat", directions=["outbound"])
    await lab.chat(HELLO)
    (asked,) = map(json.loads, lab.sent("openai_chat"))
    assert [(one["role"], HELLO in one["content"]) for one in asked["messages"]] == [
        ("user", True),
        ("assistant", True),
    ]


@pytest.mark.parametrize("effect", ["observe", "points", "review", "veto"])
async def test_a_stream_waits_for_a_veto_and_ends_closed_for_other_effects(lab: Lab, effect: str) -> None:
    await lab.add(effect=effect, points=70, directions=["outbound"])
    for text, is_bad in ((HELLO * 20, False), (HELLO * 20 + BAD, True)):
        events = await lab.stream(text)
        choices = [choice for event in events for choice in event["choices"]]
        said = "".join(choice["delta"].get("content") or "" for choice in choices)
        is_closed = is_bad and effect in ("points", "veto")
        assert choices[-1]["finish_reason"] == ("content_filter" if is_closed else "stop")
        assert (BAD in said) is (is_bad and not is_closed)
        if is_closed:
            assert (HELLO in said) is (effect != "veto")
        assert (
            events[-1]["shield"]["verdict"] == {"observe": "ALLOW", "review": "REVIEW"}.get(effect, "BLOCK")
            or not is_bad
        )
    await lab.site.gateway.store.db.write(lambda tx: None)
    event = (await lab.ask("GET", "/api/audit?action=chat_completed"))["data"][-1]
    assert event["details"]["outbound_stream"] == ("whole" if effect == "veto" else "held")


@pytest.mark.parametrize(
    ("when", "text", "is_asked"),
    [
        ("always", BAD, True),
        ("score 1-100", BAD, False),
        ("score 0-10", BAD, True),
        ("score 10-59", "maybe please " + BAD, True),
        ("score 11-59", "maybe please " + BAD, False),
        ("category injection,pii", "maybe please " + BAD, True),
        ("category injection,pii", BAD, False),
        ("category secret", "maybe please " + BAD, False),
        ("sample 1", BAD, True),
        ("sample 0.0", BAD, False),
    ],
)
async def test_a_detector_is_asked_only_when_it_should_be(
    tmp_path: Path, server: Script, when: str, text: str, is_asked: bool
) -> None:
    weak = RULES["rules"][0] | {"id": "local:maybe", "severity": "medium", "literals": ["maybe please"], "match": ["maybe please"]}  # type: ignore[index]  # fmt: skip
    async with open_site(tmp_path) as site:
        lab = Lab(site, server, (await site.key())["key"])
        assert (await lab.ask("POST", "/api/shield/rules", {"rule": weak, "reason": "test"}))["status"] == 201
        await lab.add(when=when)
        assert ((await lab.scan(text))["verdict"] == "BLOCK") is is_asked
        assert bool(lab.sent()) is is_asked


async def test_a_threshold_and_labels_decide_what_counts(lab: Lab) -> None:
    await lab.add(threshold=0.91)
    assert found(await lab.scan()) == ("ALLOW", 0)
    await lab.change(threshold=0.9)
    assert found(await lab.scan()) == ("BLOCK", 60)
    await lab.change(labels={"LABEL_0": "command", "LABEL_1": "safe"})
    assert found(await lab.scan()) == ("ALLOW", 0)
    assert (await lab.scan(HELLO))["detections"][0]["category"] == "command"


async def test_a_veto_of_a_model_that_is_not_sure_is_a_review(lab: Lab) -> None:
    await lab.add("openai_chat")
    assert found(await lab.scan("perhaps bad")) == ("REVIEW", 25)


FAILURES: dict[str, tuple[str, dict[str, Any]]] = {
    "dead": ("tei_predict", {}),
    "slow": ("tei_predict", {"seconds": 3}),
    "long": ("tei_predict", {"chars": 5}),
    "wrong": ("tei_predict", {}),
    "other": ("tei_predict", {}),
    "contradict": ("openai_chat", {}),
    "500": ("tei_predict", {}),
    "401": ("tei_predict", {}),
    "html": ("tei_predict", {}),
    "empty": ("fms_contents", {}),
    "huge": ("fms_contents", {}),
    "redirect": ("fms_contents", {}),
    "say": ("fms_contents", {"body": [{}]}),
}


@pytest.mark.parametrize("mode", FAILURES)
async def test_a_detector_that_gives_no_judgement_is_never_taken_for_a_good_one(lab: Lab, mode: str) -> None:
    kind, more = FAILURES[mode]
    lab.server.mode(mode, **more)
    fields: dict[str, Any] = {"timeout_ms": 300} if mode == "slow" else {}
    if mode == "dead":
        fields["base_url"] = f"http://127.0.0.1:{free_port()}"
    await lab.add(kind, **fields)
    data = await lab.scan(HELLO)
    assert found(data) == ("BLOCK", 60)
    assert data["detections"][0]["description"].startswith("The detector gave no judgement: ")
    assert (await lab.chat(HELLO))["status"] == 400
    await lab.change(on_error="allow")
    assert found(await lab.scan(HELLO)) == ("ALLOW", 0)
    assert (await lab.chat(HELLO))["status"] == 200


@pytest.mark.parametrize(
    ("effect", "on_error", "verdict"),
    [
        ("observe", None, "ALLOW"), ("points", None, "REVIEW"), ("review", None, "REVIEW"), ("veto", None, "BLOCK"),
        ("observe", "block", "BLOCK"), ("points", "allow", "ALLOW"), ("review", "block", "BLOCK"), ("veto", "review", "REVIEW"),
    ],
)  # fmt: skip
async def test_without_a_judgement_the_record_says_what_happens(
    lab: Lab, effect: str, on_error: str | None, verdict: str
) -> None:
    lab.server.mode("500")
    made = await lab.add(effect=effect, **({} if on_error is None else {"on_error": on_error}))
    assert made["on_error"] == {"ALLOW": "allow", "REVIEW": "review", "BLOCK": "block"}[verdict]
    data = await lab.scan(HELLO)
    assert data["verdict"] == verdict and len(data["detections"]) == 1


async def test_a_liar_takes_nothing_from_what_the_shield_found(lab: Lab) -> None:
    lab.server.mode("safe")
    await lab.add()
    assert found(await lab.scan()) == ("ALLOW", 0)
    assert found(await lab.scan(ATTACK)) == ("BLOCK", 60)


@pytest.mark.parametrize("at", range(80, 121, 4))
async def test_a_word_at_the_border_of_two_windows_is_found(lab: Lab, at: int) -> None:
    await lab.add("fms_contents", window_chars=100, overlap_chars=20)
    text = "a" * at + "swordfish" + "b " * 100
    (one,) = (await lab.scan(text))["detections"]
    assert (one["start"], one["end"]) == (at, at + 9)


async def test_a_long_text_goes_in_batches_and_too_long_a_one_is_an_error(lab: Lab) -> None:
    await lab.add(window_chars=100, overlap_chars=0)
    assert found(await lab.scan("a " * 1990 + "swordfish")) == ("BLOCK", 60)
    sizes = [len(json.loads(entry["body"])["inputs"]) for entry in lab.server.seen("/predict")]
    assert sorted(sizes) == [8, 32]
    assert "".join(sorted(lab.sent(), key=len, reverse=True)).replace("a ", "") == "swordfish"
    assert found(await lab.scan("a" * 25_600)) == ("ALLOW", 0)
    data = await lab.scan("a" * 200_001)
    assert found(data) == ("BLOCK", 60) and "2001 windows" in data["detections"][0]["description"]


async def test_what_was_judged_before_a_failure_is_not_asked_again(lab: Lab) -> None:
    await lab.add("openai_chat", max_concurrent=1, timeout_ms=1_000)
    lab.server.mode("slow", seconds=0.3)
    turns = [f"turn number {number}" for number in range(6)]
    statuses = [(await lab.chat(*turns))["status"] for _ in range(6)]
    assert statuses[0] == 400 and statuses[-1] == 200


async def test_a_detector_has_no_more_requests_at_once_than_it_should(lab: Lab) -> None:
    lab.server.mode("slow", seconds=0.1)
    lab.server.ask("/most", None)
    await lab.add("presidio", window_chars=100, overlap_chars=0, max_concurrent=2)
    await lab.scan("a " * 500)
    assert len(lab.server.seen("/analyze")) == 10
    assert lab.server.ask("/most", None) == 2
    await lab.change(max_concurrent=9, cache_seconds=0)
    await lab.scan("a " * 500)
    assert lab.server.ask("/most", None) > 2
    await lab.change(max_concurrent=1, timeout_ms=500)
    data = await lab.scan("a " * 500)
    assert data["verdict"] == "BLOCK", "the wait is that for all windows together"


async def test_a_judgement_is_remembered_for_its_owner_and_its_detector(lab: Lab) -> None:
    await lab.add(directions=["inbound", "outbound"])
    for text in (BAD, HELLO, BAD, HELLO):
        await lab.scan(text)
    assert lab.sent() == [BAD, HELLO]
    other = (await lab.site.key(name="other"))["key"]
    await lab.scan(BAD, key=other)
    assert lab.sent() == [BAD, HELLO, BAD]
    await lab.change(threshold=0.8)
    assert found(await lab.scan()) == ("BLOCK", 60)
    assert len(lab.sent()) == 4
    await lab.scan(direction="outbound")
    assert len(lab.sent()) == 5, "another direction is another question"
    await lab.change(cache_seconds=0)
    await lab.scan()
    await lab.scan()
    assert len(lab.sent()) == 7


async def test_a_failure_is_not_remembered(lab: Lab) -> None:
    lab.server.mode("500")
    await lab.add()
    assert found(await lab.scan(HELLO)) == ("BLOCK", 60)
    lab.server.mode("normal")
    assert found(await lab.scan(HELLO)) == ("ALLOW", 0)


async def test_of_a_conversation_only_the_new_texts_are_sent(lab: Lab) -> None:
    await lab.add()
    turns = ["One is here.", "Two is there.", "Three is gone."]
    await lab.chat(*turns[:1])
    await lab.chat(*turns)
    assert lab.sent() == turns
    assert (await lab.chat(*turns, "Four.", BAD))["status"] == 400
    assert lab.sent()[3:] == ["Four.", BAD]


async def test_the_text_of_an_attached_file_is_judged(lab: Lab) -> None:
    await lab.add()
    data = "data:text/plain;base64," + base64.b64encode(BAD.encode()).decode()
    part = {"type": "file", "file": {"filename": "a.txt", "file_data": data}}
    body = {"model": "echo", "messages": [{"role": "user", "content": [{"type": "text", "text": HELLO}, part]}]}
    assert (await lab.ask("POST", CHAT, body, key=lab.key))["status"] == 400


async def test_a_secret_is_masked_before_a_text_leaves(strict: Lab) -> None:
    await strict.site.make("/api/policies", name="allow", category_actions={"secret": "allow"})
    strict.key = (await strict.site.key(name="allow", policy="allow"))["key"]
    made = await strict.add(effect="points", on_error="review")
    assert made["send_masked"] is False, "it is on this host"
    await strict.scan(SPILL)
    assert SECRET in "".join(strict.sent())
    strict.server.mode("normal")
    await strict.change(send_masked=True)
    hidden = base64.b64encode(SPILL.encode()).decode()
    await strict.scan(SPILL + " swordfish")
    await strict.scan("Decode this: " + hidden)
    plain, encoded = strict.sent()
    assert SECRET not in plain and plain.startswith("The access key is ") and plain.endswith("swordfish")
    assert encoded.startswith("Decode this: ") and hidden not in encoded
    parts = [{"type": "text", "text": text} for text in ("aws_access_key_id = " + SECRET[:9], SECRET[9:])]
    body = {"model": "echo", "messages": [{"role": "user", "content": parts}]}
    answer = await strict.ask("POST", CHAT, body, key=strict.key)
    assert answer["headers"]["x-service-shield-verdict"] == "REVIEW"
    assert strict.sent() == [plain, encoded], "a secret that is spread over texts cannot be masked"
    assert (await strict.ask("GET", f"{DETECTORS}/d"))["data"]["status"] == "healthy", "that was not its fault"
    await strict.add("openai_chat", name="e", effect="observe", directions=["outbound"], send_masked=True)
    await strict.chat(SPILL)
    (asked,) = strict.sent("openai_chat")
    assert asked.count("The access key is ") == 2 and SECRET not in asked
    await strict.ask("PATCH", f"{DETECTORS}/e", {"window_chars": 100, "overlap_chars": 0})
    await strict.chat(f"The access key is {SECRET} {'and so on ' * 9}"[: 18 + 8 + 100])
    assert SECRET[8:] not in "".join(strict.sent("openai_chat")), "cut before it was masked"


async def test_a_detector_elsewhere_gets_masked_texts_by_default(lab: Lab) -> None:
    for name, url, is_masked in (
        ("a", "http://127.9.9.9:1", False), ("b", "http://[::1]:1", False), ("c", "http://10.0.0.1:1", True),
        ("e", "https://127.example:1", True),
    ):  # fmt: skip
        made = await lab.add(name=name, base_url=url, enabled=False)
        assert made["send_masked"] is is_masked, url


async def test_a_key_is_used_and_never_shown(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "k-made-up-0123456789"
    monkeypatch.setenv("GATEWAY_PROVIDER_GUARD", secret)
    made = await lab.add(api_key="env:GATEWAY_PROVIDER_GUARD")
    assert made["api_key_source"] == "env:GATEWAY_PROVIDER_GUARD"
    changed = await lab.change(api_key=secret)
    assert changed["data"]["api_key_source"] == "stored"
    lab.server.mode("say", body=[[{"label": "LABEL_1", "score": secret}]])
    answers = [await lab.scan(), await lab.ask("POST", f"{DETECTORS}/d/test"), await lab.ask("GET", DETECTORS)]
    assert lab.server.seen("/predict")[0]["headers"]["authorization"] == f"Bearer {secret}"
    answers += [await lab.ask("GET", "/api/audit"), await lab.ask("GET", "/api/alerts"), made, changed]
    assert secret not in json.dumps(answers) + lab.site.log.getvalue()
    moved = await lab.change(base_url="http://127.0.0.2:9")
    assert (moved["status"], moved["error"]["param"]) == (400, "api_key")
    assert (await lab.change(base_url="http://127.0.0.2:9", api_key=secret))["status"] == 200
    assert (await lab.change(base_url=lab.url, api_key=None))["data"]["api_key_source"] is None


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"base_url": "http://127.0.0.1:9", "allow_private": False}, "base_url"),
        ({"base_url": "http://169.254.169.254/", "allow_private": True}, "base_url"),
        ({"base_url": "ftp://guard.example"}, "base_url"),
        ({"base_url": "http://a:b@guard.example"}, "base_url"),
        ({"name": "Upper"}, "name"),
        ({"labels": {}}, "labels"),
        ({"labels": {"LABEL_0": "safe"}}, "labels"),
        ({"labels": {"a": "nonsense"}}, "labels"),
        ({"kind": "openai_chat"}, "model"),
        ({"kind": "openai_chat", "model": "m"}, "format"),
        ({"kind": "openai_chat", "model": "m", "format": "labels", "labels": {}}, "labels"),
        ({"kind": "openai_chat", "model": "m", "format": "labels", "labels": {"*": "injection", "ok": "safe"}}, "labels"),
        ({"kind": "json", "body": '{"q": "{{text}}"}'}, "score_path"),
        ({"kind": "json", "body": '{"q": "text"}', "score_path": ""}, "body"),
        ({"kind": "json", "body": '{"{{text}}": 1}', "score_path": ""}, "body"),
        ({"kind": "json", "body": "{{text}}", "score_path": ""}, "body"),
        ({"when": "score 20-10"}, "when"),
        ({"when": "score 20-101"}, "when"),
        ({"when": "category nonsense"}, "when"),
        ({"when": "sample 2"}, "when"),
        ({"threshold": 1.1}, "threshold"),
        ({"window_chars": 300, "overlap_chars": 151}, "overlap_chars"),
        ({"directions": []}, "directions"),
    ],
)  # fmt: skip
async def test_a_bad_detector_is_told_its_field(lab: Lab, fields: dict[str, Any], param: str) -> None:
    answer = await lab.ask("POST", DETECTORS, fields_of(lab.url, "tei_predict") | fields)
    assert answer["status"] in (400, 409) and answer["error"]["param"].partition(".")[0] == param, answer
    assert (await lab.ask("GET", DETECTORS))["data"] == []


async def test_a_name_that_leads_to_a_private_address_is_refused_at_once(lab: Lab) -> None:
    async def resolve(base_url: str) -> tuple[str, ...]:
        return ("10.0.0.5",)

    lab.site.gateway.detectors.resolve = resolve
    fields = fields_of(lab.url, "tei_predict", base_url="http://guard.example:9")
    answer = await lab.ask("POST", DETECTORS, fields | {"allow_private": False})
    assert (answer["status"], answer["error"]["param"]) == (400, "base_url")
    assert (await lab.ask("POST", DETECTORS, fields))["status"] == 201
    assert (await lab.change(allow_private=False))["status"] in (400, 409)


async def test_a_circuit_opens_raises_an_alert_and_closes_again(lab: Lab) -> None:
    lab.server.mode("500")
    await lab.add()
    for number in range(7):
        assert found(await lab.scan(f"{HELLO} {number}")) == ("BLOCK", 60)
    assert len(lab.server.seen("/predict")) == 5, "it is left alone after five failures"
    assert (await lab.ask("GET", f"{DETECTORS}/d"))["data"]["status"] == "open"
    await lab.site.gateway.store.db.write(lambda tx: None)
    (alert,) = (await lab.ask("GET", "/api/alerts?rule=detector-down"))["data"]
    assert (alert["title"], alert["source"], alert["severity"]) == ("Detector d is down", "detector", "high")
    assert (await lab.site.gateway.health.checks())["detectors"] == "degraded"
    said = (await lab.ask("POST", f"{DETECTORS}/d/test"))["data"]
    assert not said["ok"] and "status 500" in said["error"]
    lab.server.mode("normal")
    assert found(await lab.scan(HELLO)) == ("BLOCK", 60), "it is still open"
    assert (await lab.ask("POST", f"{DETECTORS}/d/test"))["data"]["ok"]
    assert found(await lab.scan(HELLO)) == ("ALLOW", 0)
    await lab.site.gateway.store.db.write(lambda tx: None)
    assert (await lab.ask("GET", "/api/alerts?rule=detector-down"))["data"][0]["status"] == "resolved"
    assert (await lab.site.gateway.health.checks())["detectors"] == "healthy"


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_texts_that_a_detector_refuses_do_not_close_the_way_for_others(lab: Lab, status: int) -> None:
    lab.server.mode("long", chars=50, status=status)
    await lab.add()
    for number in range(7):
        assert found(await lab.scan("long " * 20 + str(number))) == ("BLOCK", 60)
    assert found(await lab.scan(HELLO)) == ("ALLOW", 0)


async def test_long_texts_that_take_too_long_do_not_close_the_way_and_short_ones_do(lab: Lab) -> None:
    lab.server.mode("slow", seconds=0.5)
    await lab.add(window_chars=100, overlap_chars=0, timeout_ms=100)
    for length, status in ((101, "untested"), (20, "open")):
        for number in range(5):
            assert found(await lab.scan(f"{number}" * length)) == ("BLOCK", 60)
        assert (await lab.ask("GET", f"{DETECTORS}/d"))["data"]["status"] == status


async def test_health_names_detectors_only_where_there_are_any(lab: Lab) -> None:
    assert "detectors" not in await lab.site.gateway.health.checks()
    await lab.add(enabled=False)
    assert "detectors" not in await lab.site.gateway.health.checks()


async def test_an_accepted_detector_adds_nothing_and_stays_visible(lab: Lab) -> None:
    await lab.add()
    until = (datetime.now(UTC) + timedelta(days=7)).isoformat(timespec="seconds")
    body = {"scope": "rule", "rule": "detector:d", "until": until, "reason": "known"}
    answer = await lab.ask("POST", "/api/risk-acceptances", body)
    assert answer["status"] == 201, answer
    data = await lab.scan()
    assert found(data) == ("ALLOW", 0)
    assert data["detections"][0]["accepted"] == answer["data"]["id"]
    assert (await lab.chat())["status"] == 200


async def test_the_ledger_tells_what_a_detector_said_and_how_long_it_took(lab: Lab) -> None:
    await lab.add(effect="points", points=30)
    answer = await lab.chat()
    await lab.site.gateway.store.db.write(lambda tx: None)
    shown = (await lab.ask("GET", "/api/traffic/" + answer["headers"]["x-service-request-id"]))["data"]
    (line,) = shown["ledger"]
    assert (line["rule"], line["name"], line["label"], line["score"]) == ("detector:d", "Detector d", "LABEL_1", 30)
    assert line["place"] == "messages[0].content" and line["elapsed_ms"] > 0
    assert shown["detections"][0]["confidence"] == 0.9


async def test_what_a_detector_does_is_measured(lab: Lab) -> None:
    await lab.add()
    await lab.scan()
    await lab.scan(HELLO)
    lab.server.mode("500")
    await lab.scan("Something else.")
    request = Request("GET", "/metrics", "", Headers({"host": "127.0.0.1:5001"}), b"", "127.0.0.1", False, 0.0)
    text = (await lab.site.dispatch.handle(request)).body.decode()
    for outcome in ("found", "clean", "failed"):
        assert f'gateway_detector_requests_total{{detector="d",outcome="{outcome}"}} 1' in text
    assert 'gateway_detector_seconds_count{detector="d"} 2' in text


async def test_the_trust_audit_names_a_detector_that_lets_texts_pass_while_it_fails(lab: Lab) -> None:
    async def check() -> Any:
        run = (await lab.ask("POST", "/api/trust-audits"))["data"]
        (one,) = [one for one in run["checks"] if one["id"] == "detectors-closed"]
        return one["status"], one["evidence"]

    assert (await check())[0] == "not_applicable"
    await lab.add()
    assert (await check())[0] == "pass"
    await lab.change(on_error="allow")
    status, evidence = await check()
    assert status == "fail" and "d" in evidence.split()
    await lab.change(effect="observe")
    assert (await check())[0] == "pass"


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_detector_can_be_tried_out(lab: Lab, enabled: bool) -> None:
    await lab.add(enabled=enabled)
    said = (await lab.ask("POST", f"{DETECTORS}/d/test"))["data"]
    assert (said["ok"], said["error"]) == (True, None)
    assert [(one["label"], one["is_found"]) for one in said["said"]] == [("LABEL_1", False), ("LABEL_1", True)]
    assert said["model"] == "lab/guard: labels LABEL_0, LABEL_1; 512 tokens at most"
    await lab.change(labels={"toxic": "injection"})
    said = (await lab.ask("POST", f"{DETECTORS}/d/test"))["data"]
    assert not said["ok"] and "its labels say" in said["error"] and said["said"] == []


async def test_who_may_see_and_change_detectors(tmp_path: Path, server: Script) -> None:
    async with open_site(tmp_path, rbac_enabled=True) as site:
        people = {role: await sign_in(site, role) for role in (Role.VIEWER, Role.OPERATOR, Role.SECURITY_MANAGER)}
        manager = people.pop(Role.SECURITY_MANAGER)
        made = await manager.ask("POST", DETECTORS, fields_of(server.url, "tei_predict"))
        assert made["status"] == 201
        for person in people.values():
            assert len((await person.ask("GET", DETECTORS))["data"]) == 1
            assert (await person.ask("POST", DETECTORS, fields_of(server.url, "presidio")))["status"] == 403
            assert (await person.ask("PATCH", f"{DETECTORS}/d", {"enabled": False}))["status"] == 403
            assert (await person.ask("POST", f"{DETECTORS}/d/test"))["status"] == 403
            assert (await person.ask("DELETE", f"{DETECTORS}/d"))["status"] == 403
        assert (await manager.ask("DELETE", f"{DETECTORS}/d"))["status"] == 200
        assert (await site.ask("GET", DETECTORS))["status"] == 401


async def test_every_change_and_test_is_recorded(lab: Lab) -> None:
    await lab.add()
    assert (await lab.change(version=7))["status"] == 409
    await lab.change(effect="review", version=1)
    await lab.ask("POST", f"{DETECTORS}/d/test")
    assert (await lab.ask("POST", DETECTORS, fields_of(lab.url, "presidio")))["status"] == 409, "the name is taken"
    assert (await lab.ask("DELETE", f"{DETECTORS}/d"))["status"] == 200
    assert await lab.site.actions("detector") == [
        f"detector_{one}" for one in ("created", "changed", "tested", "removed")
    ]
    assert found(await lab.scan()) == ("ALLOW", 0)


async def test_the_validation_suite_compares_with_and_without_each_detector(lab: Lab) -> None:
    lab.server.mode("say", body={"result": {"score": 0.9, "label": "x"}})
    await lab.add("json")
    await lab.add("presidio", name="dead", base_url=f"http://127.0.0.1:{free_port()}", effect="observe")
    run = (await lab.ask("POST", "/api/shield/tests", {"category": "c2", "detectors": True}))["data"]
    all_found, dead = run["detectors"]
    attacks, controls = all_found["attacks"], all_found["controls"]
    assert attacks == run["report"]["attacks"] > 0 < controls == run["report"]["controls"]
    assert all_found["name"] == "d"
    assert (all_found["found_shield"], all_found["flagged_shield"]) == (
        run["report"]["found"],
        run["report"]["flagged"],
    )
    assert all_found["found_alone"] == all_found["found"] == attacks
    assert all_found["flagged_alone"] == all_found["flagged"] == controls
    assert (all_found["decided"] >= controls, all_found["errors"]) == (True, 0)
    assert 0 < all_found["p50_us"] <= all_found["p95_us"]
    assert (dead["found_alone"], dead["found"], dead["decided"]) == (0, run["report"]["found"], 0)
    assert dead["errors"] == attacks + controls
    assert (await lab.ask("POST", "/api/shield/tests", {"category": "c2"}))["data"]["detectors"] == []


def test_a_detector_lives_its_whole_life_on_the_command_line(tmp_path: Path, server: Script) -> None:
    def run(*words: str, code: int = 0, stdin: str = "") -> Any:
        done = command("detectors", *words, "--data-dir", tmp_path / "data", stdin=stdin, GATEWAY_PROVIDER_GUARD="k-1")
        assert done.returncode == code, done
        return json.loads(done.stdout) if "--json" in words else done.stdout + done.stderr

    place = ("--kind", "tei_predict", "--base-url", server.url, "--allow-private", "true", "--timeout-ms", "20000")
    assert "k-2" not in run("add", "--name", "d", *place, "--labels", json.dumps(LABELS), "--api-key", "k-2", code=2)
    run("add", "--name", "d", *place, "--labels", json.dumps(LABELS), "--api-key", "env:GATEWAY_PROVIDER_GUARD")
    (one,) = run("list", "--json")
    assert (one["name"], one["effect"], one["on_error"]) == ("d", "observe", "allow")
    run(
        "update",
        "d",
        "--effect",
        "veto",
        "--threshold",
        "0.8",
        "--directions",
        "inbound,outbound",
        "--send-masked",
        "true",
    )
    one = run("show", "d", "--json")
    assert (one["effect"], one["threshold"], one["directions"]) == ("veto", 0.8, ["inbound", "outbound"])
    assert (one["on_error"], one["send_masked"], one["labels"]) == ("block", True, LABELS)
    said = run("test", "d")
    assert "not found LABEL_1 0.10" in said and "found     LABEL_1 0.90" in said and "lab/guard" in said
    assert server.seen("/predict")[0]["headers"]["authorization"] == "Bearer k-1"
    server.mode("500")
    assert "status 500" in run("test", "d", code=1)
    assert "--when must be always" in run("update", "d", "--when", "sometimes", code=2)
    run("remove", "d")
    assert run("list", "--json") == []
    assert "no such detector" in run("show", "d", code=2)
