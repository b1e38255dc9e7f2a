import json

from gateway.llm.masking import NOTICE, masked_choice, strings, with_joined_parts, with_strings, withheld_choice

SECRET = "made-up-secret"


def masked(value: object) -> object:
    return with_strings(value, {text: text.replace(SECRET, "****") for text in strings(value)})


def test_a_withheld_choice_keeps_nothing_but_its_index() -> None:
    choice = {
        "index": 3,
        "message": {"content": SECRET, "tool_calls": [{}], "reasoning": SECRET},
        "logprobs": {"content": []},
        "finish_reason": "stop",
        "future": SECRET,
    }
    left = withheld_choice(choice, 0)
    assert left == {
        "index": 3,
        "message": {"role": "assistant", "content": NOTICE, "refusal": None},
        "logprobs": None,
        "finish_reason": "content_filter",
    }
    assert withheld_choice({"index": SECRET}, 7)["index"] == 7


def test_strings_and_keys_are_exchanged_and_nothing_else() -> None:
    value = {"a": [SECRET, 5, None, True, 1.5], SECRET: {"b": f"x {SECRET} y"}}
    assert masked(value) == {"a": ["****", 5, None, True, 1.5], "****": {"b": "x **** y"}}


def test_json_inside_of_a_string_stays_json() -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in SECRET)
    arguments = '{"q": "' + escaped + '", "n": 1.0, "deep": "[\\"' + escaped + '\\"]"}'
    inner = json.loads(str(masked({"arguments": arguments})["arguments"]))  # type: ignore[call-overload, index]
    assert inner["q"] == "****" and inner["n"] == 1.0
    assert json.loads(inner["deep"]) == ["****"]


def test_harmless_json_inside_of_a_string_is_not_even_reformatted() -> None:
    assert masked('{ "a" : 1 }') == '{ "a" : 1 }'


def test_broken_json_is_one_string() -> None:
    assert masked('{"a": "' + SECRET) == '{"a": "****'


def test_a_masked_choice_loses_its_log_probabilities() -> None:
    choice = {"message": {"content": SECRET}, "logprobs": {"content": [{"token": "made"}]}}
    assert masked_choice(choice, {SECRET: "****"}) == {"message": {"content": "****"}, "logprobs": None}
    assert masked_choice(choice, {}) == choice


def test_neighbouring_text_parts_become_one() -> None:
    odd = {"type": "odd", "text": "c"}
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, odd, {"type": "text", "text": "d"}]
    joined = with_joined_parts({"content": parts})
    assert joined == {"content": [{"type": "text", "text": "ab"}, odd, {"type": "text", "text": "d"}]}
    for other in ({"content": "text"}, None, "x"):
        assert with_joined_parts(other) == other
