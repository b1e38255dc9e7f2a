"""Numbers that `training.numbers` makes are found beside their names, and their look-alikes do not reach REVIEW."""

import pytest

from gateway.shield import Direction, Shield, load
from training.numbers import REVIEW_SCORE, Example, examples, lookalikes

_LEAST_FOUND = 0.9
_MOST_FLAGGED = 0.005


@pytest.fixture(scope="module")
def shipped() -> Shield:
    return load()


def _is_found(shield: Shield, example: Example) -> bool:
    start = example.text.find(example.number)
    return any(
        one.category in ("pii", "financial") and one.start < start + len(example.number) and start < one.end
        for one in shield.scan(example.text, Direction.INBOUND).detections
    )


def test_numbers_with_their_names_are_found(shipped: Shield) -> None:
    found = [_is_found(shipped, example) for example in examples(7, each=9)]
    assert sum(found) / len(found) >= _LEAST_FOUND


def test_numbers_that_are_nobodys_do_not_reach_review(shipped: Shield) -> None:
    scores = [shipped.scan(example.text, Direction.INBOUND).score for example in lookalikes(7, each=80)]
    assert sum(score >= REVIEW_SCORE for score in scores) / len(scores) <= _MOST_FLAGGED
