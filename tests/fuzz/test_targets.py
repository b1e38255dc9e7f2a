"""Every reader of a stranger's bytes, on what hypothesis makes up; the same inputs in each run."""

import json
from collections.abc import Callable

import pytest
from fuzz.pieces import PIECES
from fuzz.targets import TARGETS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

DEARER = {"rule_loader": 5}  # times as dear as the others


_WORDS = [
    "text",
    "content",
    "type",
    "image_url",
    "url",
    "name",
    "arguments",
    "tool_calls",
    "function",
    "input_audio",
    "x",
]
_VALUE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 9), st.text(max_size=6), st.sampled_from(_WORDS)),
    lambda inside: st.one_of(
        st.lists(inside, max_size=3), st.dictionaries(st.sampled_from(_WORDS) | st.text(max_size=4), inside, max_size=4)
    ),
    max_leaves=12,
)
_MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": st.text(max_size=8) | _VALUE},
    optional={"tool_calls": st.lists(_VALUE, max_size=2), "name": st.text(max_size=5), "x": _VALUE},
)
_CHAT = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": st.lists(_MESSAGE, min_size=1, max_size=3)},
    optional={"tools": st.lists(_VALUE, max_size=2), "user": st.text(max_size=5)},
)
_WHOLE = {"chat_walker": _CHAT.map(lambda chat: json.dumps(chat).encode())}


def test_every_target_has_pieces() -> None:
    assert TARGETS.keys() == PIECES.keys()


@pytest.mark.parametrize("examples", [400, pytest.param(1500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_keeps_its_promise_whatever_the_bytes(name: str, examples: int) -> None:
    target: Callable[[bytes], None] = TARGETS[name]
    pieced = st.lists(st.one_of(st.sampled_from(PIECES[name]), st.binary(max_size=3)), max_size=24).map(b"".join)

    @settings(
        max_examples=examples // DEARER.get(name, 1),
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(_WHOLE[name] if name in _WHOLE else st.one_of(pieced, st.binary(max_size=200)))
    def run(raw: bytes) -> None:
        target(raw)

    run()
