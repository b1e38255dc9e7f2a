"""The hash chain of audit events."""

import hashlib
import json
from dataclasses import replace

import pytest

from gateway.domain.audit import GENESIS_HASH, AuditEvent, ChainHead, canonical, chain, check_links, link
from gateway.schema import encode

START = ChainHead(0, GENESIS_HASH)


def event(number: int = 1) -> AuditEvent:
    return AuditEvent(
        id=f"evt_{number}",
        occurred_at=1_700_000_000_000 + number,
        source="cli",
        action="api_key_created",
        actor="größe",
        actor_type="local",
        instance_id="ins_1",
        details={"b": [1, 2.5, None], "a": {"y": True, "x": "ü\u2028"}},
    )


def events(count: int) -> list[AuditEvent]:
    head, made = START, []
    for number in range(1, count + 1):
        made.append(link(head, event(number)))
        head = ChainHead(made[-1].seq, made[-1].hash)
    return made


def test_the_hash_is_the_sha256_of_the_hash_before_and_the_canonical_json() -> None:
    first, second = events(2)
    assert first.prev_hash == GENESIS_HASH
    assert second.prev_hash == first.hash
    assert second.hash == hashlib.sha256(first.hash.encode() + canonical(second)).hexdigest()


def test_the_canonical_json_holds_every_field_of_the_api_but_the_hashes() -> None:
    one = replace(event(), agent="helpdesk-bot", direction="inbound")
    names = set(json.loads(canonical(one)))
    assert names == set(encode(one)) - {"hash", "prev_hash"}


@pytest.mark.parametrize("agent", [None, "helpdesk-bot"])
def test_an_auditor_can_compute_the_hash_from_the_answer_of_the_api(agent: str | None) -> None:
    one = link(START, replace(event(), agent=agent))
    answer = encode(one) | {"timestamp": one.occurred_at}
    for name in ("agent", "direction"):
        if answer[name] is None:
            del answer[name]
    prev_hash, given = str(answer.pop("prev_hash")), answer.pop("hash")
    text = json.dumps(answer, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256((prev_hash + text).encode()).hexdigest() == given


def test_the_order_of_keys_does_not_change_the_hash() -> None:
    one = event()
    assert chain("0", one) == chain("0", replace(one, details=dict(reversed(one.details.items()))))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), object(), {1, 2}])
def test_what_is_no_json_value_has_no_canonical_form(bad: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        canonical(replace(event(), details={"bad": bad}))


def test_a_whole_chain_is_good() -> None:
    made = events(5)
    head, report = check_links(START, made)
    assert (report.ok, report.events, head) == (True, 5, ChainHead(5, made[-1].hash))


@pytest.mark.parametrize(
    "change",
    [
        {"actor": "somebody else"},
        {"occurred_at": 1},
        {"details": {}},
        {"reason": ""},
        {"before": {}},
        {"outcome": "failed"},
        {"instance_id": "ins_2"},
        {"details": {"bad": float("nan")}},
        {"prev_hash": "f" * 64},
        {"hash": "f" * 64},
        {"seq": 4},
    ],
)
def test_any_change_of_an_event_is_found_at_its_place(change: dict[str, object]) -> None:
    made = events(5)
    made[2] = replace(made[2], **change)  # type: ignore[arg-type]
    head, report = check_links(START, made)
    assert (report.ok, report.first_broken_seq, report.events, head.seq) == (False, 3, 2, 2)
    assert report.reason


def test_a_missing_event_is_found() -> None:
    made = events(5)
    del made[1]
    assert check_links(START, made)[1].first_broken_seq == 2


def test_swapped_events_are_found() -> None:
    made = events(5)
    made[1], made[2] = made[2], made[1]
    assert check_links(START, made)[1].first_broken_seq == 2


def test_an_inserted_event_is_found_even_when_it_is_hashed_well() -> None:
    made = events(5)
    forged = link(ChainHead(1, made[0].hash), event(99))
    report = check_links(START, [made[0], forged, *made[2:]])[1]
    assert (report.ok, report.first_broken_seq) == (False, 3)
