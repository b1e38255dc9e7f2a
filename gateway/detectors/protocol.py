"""What all protocols of detectors have in common."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.detectors import SAFE, Detector
from gateway.shield.detections import Direction


class Unreadable(ValueError):
    """The answer does not have the form of the protocol. It never means that a text is safe."""


@dataclass(frozen=True, slots=True)
class Question:
    """A text to judge. asked: what an answer of a model replies to, empty if that is not known."""

    text: str
    direction: Direction
    asked: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a detector says of one text.

    probability: 0 to 1, that the text is what `label` says. start, end: the part of the text at fault, in code points;
    both 0 for all of it. is_unsure: the detector itself does not decide.
    """

    probability: float
    label: str
    start: int = 0
    end: int = 0
    is_unsure: bool = False


NOTHING = Judgement(0.0, SAFE)


@dataclass(frozen=True, slots=True)
class Protocol:
    """One kind of detector.

    path: of the request behind the base URL. most: how many texts one request may have. body: the JSON of the request.
    read: a judgement for each text, of the JSON of the answer. It raises Unreadable, or any of `BAD_FORM`.
    """

    path: str
    most: int
    body: Callable[[Detector, Sequence[Question]], object]
    read: Callable[[Detector, Any, int], Sequence[Judgement]]


BAD_FORM = (Unreadable, LookupError, TypeError, ValueError, AttributeError)
"""What reading an answer raises that has another form."""


def probability(value: object) -> float:
    """Return a number of an answer that must be a probability."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value <= 1 and math.isfinite(value)):
        raise Unreadable("a score is no number from 0 to 1")
    return float(value)


def chance(value: object) -> float:
    """Return true or false, or a probability, of an answer as a number."""
    return float(value) if isinstance(value, bool) else probability(value)


def listed(value: object) -> list[Any]:
    """Return a list of an answer. Nothing else is one: an empty object, too, would look like no findings."""
    if not isinstance(value, list):
        raise Unreadable("something is no list")
    return value


def named(value: object) -> str:
    """Return a label of an answer: a text, or the number of a class."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Unreadable("a label is neither a text nor a number")
    return str(value)[:100]


def counts(detector: Detector, one: Judgement) -> bool:
    """Tell whether a judgement objects to its text, by the labels and the threshold of its detector."""
    is_sure_enough = one.is_unsure or one.probability >= detector.threshold
    return one is not NOTHING and is_sure_enough and detector.category(one.label) is not None


def worst(detector: Detector, found: Sequence[Judgement]) -> Judgement:
    """Return the judgement that weighs most of those whose label counts, `NOTHING` if none does."""
    counting = (one for one in found if detector.category(one.label) is not None)
    return max(counting, key=lambda one: (counts(detector, one), not one.is_unsure, one.probability), default=NOTHING)
