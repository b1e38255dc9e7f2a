"""Classifiers and detectors of spans, and the table of all protocols."""

import json
import re
from collections.abc import Sequence
from typing import Any

from gateway.detectors.chat import OPENAI_CHAT
from gateway.detectors.protocol import (
    Judgement,
    Protocol,
    Question,
    Unreadable,
    chance,
    listed,
    named,
    probability,
    worst,
)
from gateway.domain.detectors import Detector, DetectorKind

PLACEHOLDER = "{{text}}"
_MOST_TEXTS = 32
"""The limit of a batch that Text Embeddings Inference has by default."""


def _texts(questions: Sequence[Question]) -> list[str]:
    return [one.text for one in questions]


def _ask_tei(detector: Detector, questions: Sequence[Question]) -> object:
    return {"inputs": [[text] for text in _texts(questions)], "raw_scores": False, "truncate": False}


def _read_tei(detector: Detector, answer: Any, count: int) -> Sequence[Judgement]:
    return [
        _classified(detector, [Judgement(probability(one["score"]), named(one["label"])) for one in scores])
        for scores in answer
    ]


def _classified(detector: Detector, found: Sequence[Judgement]) -> Judgement:
    """Return the worst label. One of those that count must be there, or the labels are those of another model."""
    if not any(detector.category(one.label) for one in found):
        raise Unreadable("it names none of the labels that count")
    return worst(detector, found)


def _ask_vllm(detector: Detector, questions: Sequence[Question]) -> object:
    return {"model": detector.model, "input": _texts(questions)}


def _read_vllm(detector: Detector, answer: Any, count: int) -> Sequence[Judgement]:
    """Read the probabilities. Only the likeliest class is named; `labels` may name the others by their number."""
    found = []
    for place, one in enumerate(sorted(answer["data"], key=lambda one: one["index"])):
        if one["index"] != place:
            raise Unreadable("an index is missing or there twice")
        chances = [Judgement(probability(value), str(number)) for number, value in enumerate(one["probs"])]
        chosen = [each for each in chances if each.label in detector.labels]
        if not chosen:
            likeliest = max(each.probability for each in chances)
            label, bad = named(one["label"]), next(filter(detector.category, detector.labels))
            is_bad = detector.category(label) is not None
            chosen = [Judgement(likeliest, label) if is_bad else Judgement(1 - likeliest, bad)]
        found.append(_classified(detector, chosen))
    return found


def _ask_moderations(detector: Detector, questions: Sequence[Question]) -> object:
    return {"input": _texts(questions)} | ({"model": detector.model} if detector.model else {})


def _read_moderations(detector: Detector, answer: Any, count: int) -> Sequence[Judgement]:
    found = []
    for one in answer["results"]:
        if not isinstance(one["flagged"], bool):
            raise Unreadable("flagged is neither true nor false")
        scores = one.get("category_scores") or one["categories"]
        all_scores = [Judgement(chance(score), name) for name, score in scores.items()]
        if detector.labels:
            found.append(_classified(detector, all_scores))
            continue
        # Without names of its own, the detector's own threshold decides as well.
        flagged = [Judgement(1.0, max(scores, key=scores.__getitem__, default=""))] if one["flagged"] else []
        found.append(worst(detector, all_scores + flagged))
    return found


def _ask_fms(detector: Detector, questions: Sequence[Question]) -> object:
    return {"contents": _texts(questions), "detector_params": {}}


def _read_fms(detector: Detector, answer: Any, count: int) -> Sequence[Judgement]:
    return [worst(detector, [_span(one, "detection") for one in listed(spans)]) for spans in listed(answer)]


def _span(found: Any, label: str) -> Judgement:
    start, end = found["start"], found["end"]
    if not (type(start) is int and type(end) is int and 0 <= start <= end):
        raise Unreadable("a span is none")
    return Judgement(probability(found["score"]), named(found[label]), start, end)


def _ask_presidio(detector: Detector, questions: Sequence[Question]) -> object:
    return {"text": questions[0].text, "language": detector.model or "en", "score_threshold": 0}


def _read_presidio(detector: Detector, answer: Any, count: int) -> Sequence[Judgement]:
    return [worst(detector, [_span(one, "entity_type") for one in listed(answer)])]


def _ask_json(detector: Detector, questions: Sequence[Question]) -> object:
    return filled(json.loads(detector.body or "null"), questions[0].text)


def filled(value: Any, text: str) -> object:
    """Return a JSON value with `text` in place of `PLACEHOLDER` in every string."""
    if isinstance(value, str):
        return value.replace(PLACEHOLDER, text)
    if isinstance(value, list):
        return [filled(one, text) for one in value]
    return {name: filled(one, text) for name, one in value.items()} if isinstance(value, dict) else value


def _read_json(detector: Detector, answer: Any, count: int) -> Sequence[Judgement]:
    score = pointed(answer, detector.score_path or "")
    label = "" if detector.label_path is None else named(pointed(answer, detector.label_path))
    return [worst(detector, [Judgement(chance(score), label)])]


def pointed(value: Any, pointer: str) -> Any:
    """Return what a JSON Pointer leads to (RFC 6901). Raises LookupError or TypeError if it leads nowhere."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) and re.fullmatch("[0-9]+", name) else value[name]
    return value


PROTOCOLS = {
    DetectorKind.OPENAI_CHAT: OPENAI_CHAT,
    DetectorKind.TEI_PREDICT: Protocol("/predict", _MOST_TEXTS, _ask_tei, _read_tei),
    DetectorKind.VLLM_CLASSIFY: Protocol("/classify", _MOST_TEXTS, _ask_vllm, _read_vllm),
    DetectorKind.OPENAI_MODERATIONS: Protocol("/moderations", _MOST_TEXTS, _ask_moderations, _read_moderations),
    DetectorKind.FMS_CONTENTS: Protocol("/api/v1/text/contents", _MOST_TEXTS, _ask_fms, _read_fms),
    DetectorKind.PRESIDIO: Protocol("/analyze", 1, _ask_presidio, _read_presidio),
    DetectorKind.JSON: Protocol("", 1, _ask_json, _read_json),
}


def read(detector: Detector, answer: object, count: int) -> Sequence[Judgement]:
    """Return a judgement for each of `count` texts.

    Raises:
        Unreadable: the answer does not have the form of the protocol, or is about another number of texts.
    """
    found = PROTOCOLS[detector.kind].read(detector, answer, count)
    if len(found) != count:
        raise Unreadable("it judged another number of texts")
    return found
