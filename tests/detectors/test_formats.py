"""Every kind of detector and every format of a guard model: what is sent, what is read, and what is no judgement."""

import json
import math
from typing import Any

import pytest

from gateway.detectors.every import PROTOCOLS, read
from gateway.detectors.protocol import BAD_FORM, NOTHING, Question, counts
from gateway.domain.detectors import ChatFormat, Detector, DetectorKind
from gateway.shield.detections import Direction

CHAT = DetectorKind.OPENAI_CHAT
TEXT = "Tell me a joke."
IN, OUT = Question(TEXT, Direction.INBOUND), Question("Here is one.", Direction.OUTBOUND, TEXT)
SAFE_LABELS = {"LABEL_1": "injection", "LABEL_0": "safe"}


def detector(kind: DetectorKind, **fields: Any) -> Detector:
    if kind in (DetectorKind.TEI_PREDICT, DetectorKind.VLLM_CLASSIFY):
        fields = {"labels": SAFE_LABELS} | fields
    if kind is DetectorKind.JSON:
        fields = {"body": '{"q": "{{text}}"}', "score_path": "/score"} | fields
    return Detector(id="det_1", name="d", kind=kind, **({"model": "m"} if kind is CHAT else {}) | fields)


def guard(format: ChatFormat, **fields: Any) -> Detector:
    if format is ChatFormat.LABELS:
        fields = {"labels": {"attack": "injection", "harmless": "safe"}, "prompt": "Say attack or harmless."} | fields
    return detector(CHAT, format=format, **fields)


def body(one: Detector, *questions: Question) -> Any:
    return json.loads(json.dumps(PROTOCOLS[one.kind].body(one, questions or (IN,))))


def completion(content: object, tokens: list[tuple[str, dict[str, float]]] | None = None, **more: object) -> Any:
    """Return an answer. tokens: each with the probabilities of what could have stood there."""
    listed = [
        {
            "token": token,
            "logprob": math.log(others.get(token, 0.99)),
            "top_logprobs": [{"token": one, "logprob": math.log(chance)} for one, chance in others.items()],
        }
        for token, others in tokens or ()
    ]
    logprobs = {"content": listed} if tokens is not None else None
    message = {"role": "assistant", "content": content}
    return {"choices": [{"index": 0, "message": message, "logprobs": logprobs, "finish_reason": "stop", **more}]}


def said(one: Detector, answer: object) -> tuple[str | None, float]:
    """Return the label, None for nothing, and the probability that is read of the answer to one question."""
    (found,) = read(one, answer, 1)
    return (None, 0.0) if found is NOTHING else (found.label, round(found.probability, 3))


USER = [{"role": "user", "content": TEXT}]
TURNS = [*USER, {"role": "assistant", "content": "Here is one."}]


@pytest.mark.parametrize(
    ("format", "fields", "kwargs"),
    [
        (ChatFormat.LLAMA_GUARD, {}, None),
        (ChatFormat.QWEN3GUARD, {}, None),
        (ChatFormat.GRANITE_GUARDIAN_3, {}, {"guardian_config": {"risk_name": "jailbreak"}}),
        (
            ChatFormat.GRANITE_GUARDIAN_3,
            {"prompt": "P"},
            {"guardian_config": {"risk_name": "own", "risk_definition": "P"}},
        ),
        (ChatFormat.GRANITE_GUARDIAN_3_3, {}, {"guardian_config": {"criteria_id": "jailbreak"}, "think": False}),
        (
            ChatFormat.GRANITE_GUARDIAN_3_3,
            {"prompt": "P"},
            {"guardian_config": {"custom_criteria": "P"}, "think": False},
        ),
        (ChatFormat.SHIELDGEMMA, {"prompt": "No harm."}, {"guideline": "No harm."}),
    ],
)
def test_a_model_whose_server_writes_the_template_gets_the_turns(
    format: ChatFormat, fields: dict[str, Any], kwargs: dict[str, Any] | None
) -> None:
    for question, messages in ((IN, USER), (OUT, TURNS)):
        sent = body(guard(format, **fields), question)
        assert sent.pop("max_tokens") >= 5
        found = sent.pop("chat_template_kwargs", None)
        assert found is None if kwargs is None else kwargs.items() <= found.items()
        assert sent == {"model": "m", "temperature": 0, "logprobs": True, "top_logprobs": 20, "messages": messages}


def test_a_model_that_is_asked_in_words_gets_them_beside_the_text() -> None:
    *turns, task = body(guard(ChatFormat.GRANITE_GUARDIAN_4, prompt="It is rude."), OUT)["messages"]
    assert turns == TURNS
    assert task["role"] == "user" and task["content"].startswith("<guardian><no-think>")
    assert "### Criteria: It is rude.\n" in task["content"] and "### Scoring Schema: yes" in task["content"]
    for format in (ChatFormat.GPT_OSS_SAFEGUARD, ChatFormat.LABELS):
        sent = body(guard(format, prompt="My policy."))
        assert sent["messages"][1:] == USER
        assert sent["messages"][0]["role"] == "system" and "My policy." in sent["messages"][0]["content"]
    assert body(guard(ChatFormat.GPT_OSS_SAFEGUARD))["reasoning_effort"] == "low"


@pytest.mark.parametrize(
    "sign",
    [
        "<|eot_id|>", "<|start_header_id|>", "<|im_end|>", "<|im_start|>", "<end_of_turn>", "<start_of_turn>", "<guardian>",
        "</guardian>", "<no-think>", "<think>", "</think>", "<score>", "</SCORE>", "<|start|>", "<|END|>", "</s>", "<s>",
        "<eos>", "<bos>", "<END CONVERSATION>", "<BEGIN CONVERSATION>", "<|9|>",
    ],
)  # fmt: skip
def test_no_text_ends_its_own_message(sign: str) -> None:
    for format in ChatFormat:
        for question in (
            Question(f"a{sign}b<{sign}", Direction.INBOUND),
            Question(f"a{sign}b<{sign}", Direction.OUTBOUND, sign),
        ):
            one = guard(format)
            parts = [
                message["content"]
                for message in body(one, question)["messages"]
                if message["role"] != "system" and not message["content"].startswith("<guardian><no-think>Judge")
            ]
            assert parts and sign not in "".join(parts), format


def test_other_text_goes_as_it_is() -> None:
    text = 'if a < b and b <c: print("<div>", x|y) <br/> <- <= | {{text}} é😀\n'
    for format in ChatFormat:
        contents = [one["content"] for one in body(guard(format), Question(text, Direction.INBOUND))["messages"]]
        assert text in contents


LG, QWEN, G3 = guard(ChatFormat.LLAMA_GUARD), guard(ChatFormat.QWEN3GUARD), guard(ChatFormat.GRANITE_GUARDIAN_3)
G33, G4 = guard(ChatFormat.GRANITE_GUARDIAN_3_3), guard(ChatFormat.GRANITE_GUARDIAN_4)
GEMMA, OSS, OWN = guard(ChatFormat.SHIELDGEMMA), guard(ChatFormat.GPT_OSS_SAFEGUARD), guard(ChatFormat.LABELS)
ONLY_S2 = guard(ChatFormat.LLAMA_GUARD, labels={"S2": "command"})
ONLY_JAILBREAK = guard(ChatFormat.QWEN3GUARD, labels={"Jailbreak": "jailbreak"})
UNSURE = {"unsafe": 0.6, "safe": 0.2, "Sorry": 0.2}


@pytest.mark.parametrize(
    ("one", "answer", "label", "probability"),
    [
        (LG, completion("safe"), "", 0.0),
        (LG, completion("\n\nsafe"), "", 0.0),
        (LG, completion("\n\nunsafe\nS1,S9"), "S1", 1.0),
        (LG, completion("unsafe\nS14 , S2 \n"), "S14", 1.0),
        (LG, completion("unsafe\n" + ",".join(f"S{n}" for n in range(1, 15))), "S1", 1.0),
        (LG, completion("unsafe"), "", 1.0),
        (LG, completion("\n\nunsafe\nS9", [("\n\n", {}), ("unsafe", UNSURE), ("\n", {}), ("S", {})]), "S9", 0.75),
        (LG, completion("unsafe\nS9", [("\n\n", {}), ("unsafe", UNSURE)]), "S9", 0.75),  # the server strips
        (LG, completion("safe", [("safe", {"safe": 0.9, "un": 0.1})]), "", 0.1),
        (LG, completion("safe", [("safe", {})]), "", 0.0),
        (ONLY_S2, completion("unsafe\nS1"), None, 0.0),
        (ONLY_S2, completion("unsafe\nS1,S2"), "S2", 1.0),
        (guard(ChatFormat.LLAMA_GUARD, labels={"*": "safe", "S2": "command"}), completion("unsafe"), "", 1.0),
        (QWEN, completion("Safety: Safe\nCategories: None"), "", 0.0),
        (QWEN, completion("Safety: Safe\nCategories: None\nRefusal: Yes"), "", 0.0),
        (QWEN, completion("Safety: Unsafe\nCategories: Violent, Jailbreak\nRefusal: No"), "Violent", 1.0),
        (QWEN, completion("Safety: Controversial\nCategories: Politically Sensitive Topics"), "", 0.5),
        (QWEN, completion("Safety: Unsafe\nCategories: PII",
                          [("Safety", {}), (":", {}), (" Unsafe", {" Unsafe": 0.8, " Safe": 0.2})]), "PII", 0.8),
        (ONLY_JAILBREAK, completion("Safety: Unsafe\nCategories: Violent, Jailbreak"), "Jailbreak", 1.0),
        (ONLY_JAILBREAK, completion("Safety: Unsafe\nCategories: Violent"), None, 0.0),
        (ONLY_JAILBREAK, completion("Safety: Unsafe\nCategories: None"), "", 1.0),
        (G3, completion("Yes"), "", 1.0),
        (G3, completion("No\n<confidence> High </confidence>"), "", 0.0),
        (G3, completion("Yes", [("Yes", {"Yes": 0.3, "No": 0.1, " no": 0.2})]), "", 0.5),
        (G33, completion("<think>\n</think>\n<score> yes </score>"), "", 1.0),
        (G33, completion("<score>no</score>"), "", 0.0),
        (G4, completion("<think>They said <score>no</score></think> hm </think>\n<score>yes</score>"), "", 1.0),
        (G4, completion("<score>yes</score>", [("<score>", {}), ("yes", {"yes": 0.7, "no": 0.3})]), "", 0.7),
        # Reasons that the server took out of the answer have tokens, and they say nothing of the answer.
        (G4, completion("<score>yes</score>", [("So the", {}), (" answer", {"no": 0.99, "yes": 0.01})]), "", 1.0),
        (OSS, completion('{"violation": 1}', [("Let", {}), (" us see: is it", {"0": 0.9, "1": 0.1})]), "", 1.0),
        (GEMMA, completion("Yes", [("Yes", {"Yes": 0.9, "No": 0.1})]), "", 0.9),
        (GEMMA, completion("No, because it is", finish_reason="length"), "", 0.0),
        (OSS, completion("1"), "", 1.0),
        (OSS, completion(" 0\n"), "", 0.0),
        (OSS, completion('{"violation":1,"policy_category":"H2","rule_ids":["a"],"confidence":"high"}'), "H2", 1.0),
        (OSS, completion('{"violation": 0, "policy_category": "none"}'), "", 0.0),
        (OSS, completion(r'{"violation":1,"rationale":"\"policy_category\": \"x\"} {","policy_category":"H3"}'), "H3", 1.0),
        (OWN, completion("Attack"), "attack", 1.0),
        (OWN, completion("\n harmless.", [("\n", {}), (" harm", {" harm": 0.6, " attack": 0.2})]), "attack", 0.25),
    ],
)  # fmt: skip
def test_an_answer_of_a_guard_model_is_read(one: Detector, answer: Any, label: str | None, probability: float) -> None:
    assert said(one, answer) == (label, probability)


def test_what_a_model_cannot_decide_counts_whatever_the_threshold() -> None:
    (found,) = read(guard(ChatFormat.QWEN3GUARD, threshold=0.9), completion("Safety: Controversial"), 1)
    assert found.is_unsure and counts(guard(ChatFormat.QWEN3GUARD, threshold=0.9), found)


SPAN = {"start": 2, "end": 5, "text": "abc", "detection": "EMAIL", "detection_type": "pii", "score": 0.7}
ENTITY = {"start": 0, "end": 4, "score": 0.85, "entity_type": "PERSON"}
TEI, VLLM = detector(DetectorKind.TEI_PREDICT), detector(DetectorKind.VLLM_CLASSIFY, model="m")
MODS, FMS = detector(DetectorKind.OPENAI_MODERATIONS), detector(DetectorKind.FMS_CONTENTS, model="d")
VIOLENCE = detector(DetectorKind.OPENAI_MODERATIONS, labels={"violence": "injection"})
PRESIDIO, JSON = detector(DetectorKind.PRESIDIO), detector(DetectorKind.JSON)
LABELLED = detector(DetectorKind.JSON, label_path="/a~1b/0", labels={"bad": "command"})


def scores(**found: object) -> list[Any]:
    return [{"label": label, "score": score} for label, score in found.items()]


def data(*probs: object, label: object = "LABEL_0", index: object = 0) -> dict[str, Any]:
    return {"index": index, "label": label, "probs": list(probs), "num_classes": len(probs)}


def result(flagged: object, scores: object = None, **categories: object) -> dict[str, Any]:
    return {"results": [{"flagged": flagged, "categories": categories, "category_scores": scores}]}


@pytest.mark.parametrize(
    ("one", "answer", "label", "probability"),
    [
        (TEI, [scores(LABEL_0=0.01, LABEL_1=0.99)], "LABEL_1", 0.99),
        (TEI, [[*scores(LABEL_1=0.9), *scores(LABEL_1=0.0)]], "LABEL_1", 0.9),
        (detector(DetectorKind.TEI_PREDICT, labels={"BENIGN": "safe", "*": "jailbreak"}),
         [scores(BENIGN=0.7, X=0.1, Y=0.2)], "Y", 0.2),
        (VLLM, {"data": [data(0.9, 0.1)]}, "LABEL_1", 0.1),
        (VLLM, {"data": [data(0.2, 0.8, label="LABEL_1")]}, "LABEL_1", 0.8),
        (detector(DetectorKind.VLLM_CLASSIFY, labels={"1": "injection", "2": "jailbreak"}),
         {"data": [data(0.5, 0.2, 0.3, label=None)]}, "2", 0.3),
        (MODS, result(False, {"hate": 0.1, "violence": 0.2}), "violence", 0.2),
        (MODS, result(True, {"hate": 0.1, "violence": 0.2}), "violence", 1.0),
        (MODS, result(True), "", 1.0),
        (MODS, result(False, hate=False), "hate", 0.0),
        (VIOLENCE, result(True, {"hate": 0.9, "violence": 0.2}), "violence", 0.2),
        (VIOLENCE, result(True, violence=True), "violence", 1.0),
        (FMS, [[SPAN, SPAN | {"score": 0.9, "detection": "B"}]], "B", 0.9),
        (FMS, [[]], None, 0.0),
        (PRESIDIO, [ENTITY], "PERSON", 0.85),
        (PRESIDIO, [], None, 0.0),
        (JSON, {"score": 0.4}, "", 0.4),
        (JSON, {"score": True}, "", 1.0),
        (LABELLED, {"score": 1, "a/b": ["bad"]}, "bad", 1.0),
        (LABELLED, {"score": 1, "a/b": ["fine"]}, None, 0.0),
        (detector(DetectorKind.JSON, score_path=""), 0.25, "", 0.25),
    ],
)  # fmt: skip
def test_an_answer_of_another_kind_is_read(one: Detector, answer: Any, label: str | None, probability: float) -> None:
    assert said(one, answer) == (label, probability)


def test_each_kind_is_asked_in_its_own_words() -> None:
    two = (IN, Question("b", Direction.INBOUND))
    assert body(TEI, *two) == {"inputs": [[TEXT], ["b"]], "raw_scores": False, "truncate": False}
    assert body(VLLM, *two) == {"model": "m", "input": [TEXT, "b"]}
    assert body(MODS, *two) == {"input": [TEXT, "b"]}
    assert body(FMS, *two) == {"contents": [TEXT, "b"], "detector_params": {}}
    assert body(PRESIDIO) == {"text": TEXT, "language": "en", "score_threshold": 0}
    made = detector(DetectorKind.JSON, body='{"a": [{"b": "<{{text}}> {{text}}"}, 1, null], "{{text}}": true}')
    evil = Question('"}, "x": "{{text}}', Direction.INBOUND)
    assert body(made, evil) == {"a": [{"b": f"<{evil.text}> {evil.text}"}, 1, None], "{{text}}": True}


def test_a_span_is_where_the_detector_says() -> None:
    for one, answer, place in ((FMS, [[SPAN]], (2, 5)), (PRESIDIO, [ENTITY], (0, 4))):
        (found,) = read(one, answer, 1)
        assert (found.start, found.end) == place


def test_each_text_of_several_has_its_own_judgement() -> None:
    answer = {"data": [data(0.9, 0.1, index=1), data(0.3, 0.7, label="LABEL_1", index=0)]}
    assert [round(one.probability, 3) for one in read(VLLM, answer, 2)] == [0.7, 0.1]


OF_ALL: list[Any] = [
    None, True, 0, 0.0, "", "safe", "<html><body>Please log in</body></html>", [], {}, [[]] * 2, [{}] * 2, ["safe"],
    {"error": "Input validation error", "error_type": "Validation"}, {"detail": "Not Found"}, {"": 1}, [None], [""], [1],
]  # fmt: skip
TRUNCATED = (
    "saf",
    "un",
    "Safety:",
    "Safety: S",
    "Y",
    "<score>",
    "<score>no",
    '{"violation"',
    '{"violation": 0',
    "0.",
    "har",
)
WORDS = (
    "", " ", "\n", "Sure!", "I cannot help with that.", "not safe", "safely", "unsafeS", "Safety: Fine", "maybe", "Unknown",
    "<score>maybe</score>", "<score>no</score> <score>yes</score>", "2", "-1", "01", "0.9", "0}", "nothing", "<html>safe</html>",
    '{"violation": 0.9}', '{"violation": 0, "violation": 1}', '{"violation": "0"}', '{"violation": null}', "[0]", "0, 1",
    '{"violation": 0} {"violation": 1}', '{"violation": 0, "x": }', "<think>safe", "Note: safe", "The text is harmless", "\x00",
    "no" * 6_000,
)  # fmt: skip
UNREADABLE: list[tuple[Detector, Any]] = [
    *((one, answer) for one in (LG, QWEN, G3, G33, G4, GEMMA, OSS, OWN, TEI, VLLM, MODS, JSON) for answer in OF_ALL),
    *((one, answer) for one in (FMS, PRESIDIO) for answer in OF_ALL if (one, answer) != (PRESIDIO, [])),
    *((one, completion(text)) for one in (LG, QWEN, G3, G33, G4, GEMMA, OSS, OWN) for text in (*WORDS, *TRUNCATED)),
    *((one, completion(content)) for one in (LG, QWEN, OSS, OWN) for content in (None, 0, True, [], {}, ["safe"])),
    *((LG, {"choices": choices}) for choices in (None, [], {}, [None], [{}], [{"message": None}], [{"message": {}}])),
    (LG, completion("safe\nS1")),
    (LG, completion("unsafe\nS1,")),
    (LG, completion("unsafe\nS1,S1", finish_reason="length")),
    (LG, completion("safe\nunsafe\nS1")),
    (QWEN, completion("Safety: Safe\nCategories: Violent")),
    (QWEN, completion("Safety: Safe\nSafety: Unsafe")),
    (QWEN, completion("Safety: Unsafe\nCategories: Viol", finish_reason="length")),
    (G3, completion("No\nYes")),
    (G4, completion("<score>no</score></think><score>")),
    (LG, completion("safe") | {"choices": [completion("safe")["choices"][0] | {"logprobs": "none"}]}),
    (LG, completion("safe") | {"choices": [completion("safe")["choices"][0] | {"logprobs": {"content": [{}]}}]}),
    *((TEI, [[{"label": "LABEL_1", "score": score}]]) for score in (None, True, "0.1", 2.0, -0.1, math.nan, math.inf, 10**400)),
    *((TEI, answer) for answer in ([scores(INJECTION=0.9)], [scores(LABEL_0=1.0)], scores(LABEL_0=0.1, LABEL_1=0.9))),
    *((TEI, [[*scores(LABEL_1=0.1), {"label": label, "score": 0.9}]]) for label in (None, True, [], {}, 1.5)),
    *((TEI, [scores(LABEL_1=0.1)] * count) for count in (0, 2)),
    *((VLLM, {"data": found}) for found in ([], [data()], [data(True)], [data(1.5)], [data(0.1, None)], [{}], [data(0.5)] * 2)),
    *((VLLM, {"data": [data(0.9, 0.1, label=label)]}) for label in (None, True, [], {})),
    *((VLLM, {"data": [data(0.9, 0.1, index=index)]}) for index in (1, -1, None, "0")),
    *((MODS, result(flagged, {"hate": 0.1})) for flagged in (None, 0, "false", [])),
    *((MODS, result(False, {"hate": score})) for score in (None, "0", 2, math.nan)),
    *((MODS, result(False, hate=value)) for value in (None, "0", "false", 2)),
    (MODS, {"results": [{"flagged": False}]}),
    (MODS, {"results": result(False, hate=False)["results"] * 2}),
    (VIOLENCE, result(True, {"hate": 0.9})),
    (VIOLENCE, result(False)),
    *((FMS, [[SPAN | wrong]]) for wrong in ({"start": -1}, {"start": 9}, {"end": "5"}, {"end": True}, {"score": 2}, {"detection": None})),
    *((FMS, [[{name: SPAN[name] for name in SPAN if name != left}]]) for left in ("start", "end", "score", "detection")),
    *((PRESIDIO, [ENTITY | wrong]) for wrong in ({"score": math.nan}, {"score": True}, {"entity_type": []}, {"start": None})),
    *((JSON, {"score": score}) for score in (None, "0.1", 2.0, -1, math.nan, [], {})),
    *((LABELLED, answer) for answer in ({"score": 0.9}, {"score": 0.9, "a/b": []}, {"score": 0.9, "a/b": [None]})),
]  # fmt: skip


def test_an_answer_in_another_form_is_an_error_and_never_safe() -> None:
    wrong = []
    for one, answer in UNREADABLE:
        try:
            wrong.append((one.kind, one.format, answer, read(one, answer, 1)))
        except BAD_FORM:
            pass
    assert wrong == []
