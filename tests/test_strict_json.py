"""The strict readers and writers: what they take, and that everything else is refused by name."""

import json
import random
import re

import pytest

from gateway import strict_json
from gateway.errors import InvalidJson, InvalidRequest, TooManyValues

DAY = 86_400_000


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="cut off"),
        pytest.param(b"[1,]", id="trailing comma"),
        pytest.param(b"{'a':1}", id="single quotes"),
        pytest.param(b"01", id="leading zero"),
        pytest.param(b"1.", id="no digit after the point"),
        pytest.param(b"+1", id="plus sign"),
        pytest.param(b"1 2", id="two values"),
        pytest.param("１".encode(), id="full-width digit"),
        pytest.param(b'"\x00"', id="control character in a string"),
        pytest.param(b'"\\x41"', id="unknown escape"),
        pytest.param(b"\x0b1", id="vertical tab as white space"),
        pytest.param(b"\xef\xbb\xbf{}", id="byte order mark"),
        pytest.param("{}".encode("utf-16"), id="UTF-16"),
        pytest.param("{}".encode("utf-16-le"), id="UTF-16 without mark"),
        pytest.param("{}".encode("utf-32"), id="UTF-32"),
        pytest.param(b'"\xff"', id="no UTF-8"),
        pytest.param(b'"\xed\xa0\x80"', id="surrogate in the bytes"),
        pytest.param(b'"\\ud800"', id="lone surrogate in a value"),
        pytest.param(b'"\\uDC00"', id="lone low surrogate"),
        pytest.param(b'{"\\ud800":1}', id="lone surrogate in a key"),
        pytest.param(b'["\\ud83d","\\ude00"]', id="pair torn over two strings"),
        pytest.param(b'{"a":1,"a":2}', id="duplicate key"),
        pytest.param(b'{"a":1,"\\u0061":2}', id="duplicate key, escaped"),
        pytest.param(b'[{"b":{"a":1,"a":1}}]', id="duplicate key further down"),
        pytest.param(b"NaN", id="NaN"),
        pytest.param(b"[-Infinity]", id="Infinity"),
        pytest.param(b"1e999", id="beyond double precision"),
        pytest.param(b"9223372036854775808", id="2^63"),
        pytest.param(b"-9223372036854775809", id="below -2^63"),
        pytest.param(b"9" * 6000, id="6,000 digits"),
        pytest.param(b"[" * 100_000, id="100,000 brackets"),
        pytest.param(b'{"a":' * 100_000, id="100,000 braces"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="100,000 levels"),
        pytest.param(b"[" * 65 + b"]" * 65, id="65 levels"),
        pytest.param(b'{"a":[' * 32 + b"{}" + b"]}" * 32, id="65 mixed levels"),
    ],
)
def test_json_that_is_not_strict_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidJson):
        strict_json.read_json(raw)


def test_64_levels_are_read() -> None:
    value = strict_json.read_json(b"[" * 63 + b'{"a":1}' + b"]" * 63)
    for _ in range(63):
        assert isinstance(value, list)
        value = value[0]
    assert value == {"a": 1}


def test_brackets_inside_strings_are_no_levels() -> None:
    text = "[{" * 500 + '"\\'
    assert strict_json.read_json(json.dumps({"text": text}).encode()) == {"text": text}


def test_many_brackets_side_by_side_are_read() -> None:
    assert strict_json.read_json(b"[" + b"[],{}," * 1000 + b"0]") == [[], {}] * 1000 + [0]


@pytest.mark.parametrize(
    "raw",
    [b"[" + b"1," * 10 + b"1]", b'{"a":[{},{},{},{},{},{},{},{},{}]}', b"[" + b'"",' * 10 + b'""]', b"[" * 11],
)
def test_more_values_than_allowed_are_refused_before_they_are_made(raw: bytes) -> None:
    with pytest.raises(TooManyValues) as caught:
        strict_json.read_json(raw, max_values=10)
    assert caught.value.code == "body_too_large"


@pytest.mark.parametrize(
    "raw",
    [
        b'["' + b",[{" * 50 + b'"]',
        rb'["\\","\",,,,,,,,,,,,,\"","a\\\",[,[,[,[,[,[,"]',
        b'{"a":"' + rb"\"" * 50 + b',,,,,,,,,,,,"}',
        b"[" + b'"",' * 9 + b'""]',
    ],
)
def test_separators_inside_of_strings_are_no_values(raw: bytes) -> None:
    assert strict_json.read_json(raw, max_values=10) == json.loads(raw)


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 0, -1])
def test_integers_of_64_bits_are_read(number: int) -> None:
    assert strict_json.read_json(str(number).encode()) == number


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_json_is_read_from_any_buffer(kind: type) -> None:
    assert strict_json.read_json(kind(b' {"a": [1, 2.5, true, null, "\xc3\xa9"]} ')) == {"a": [1, 2.5, True, None, "é"]}


def test_escaped_surrogate_pair_is_one_character() -> None:
    assert strict_json.read_json(b'"\\ud83d\\ude00"') == "😀"


def test_escaped_backslash_before_a_surrogate_number_is_plain_text() -> None:
    assert strict_json.read_json(b'"\\\\ud800"') == "\\ud800"


def test_message_of_bad_json_does_not_repeat_it() -> None:
    with pytest.raises(InvalidJson) as refused:
        strict_json.read_json(b'{"secret-word": "\\q"}')
    assert "secret-word" not in refused.value.message


def random_json(dice: random.Random, depth: int = 4) -> object:
    text = "".join(chr(dice.choice((dice.randrange(0x80), 0xE9, 0x1F600, 0x2028))) for _ in range(dice.randrange(6)))
    leaves = (None, True, False, dice.randrange(-(2**63), 2**63), dice.uniform(-1e300, 1e300), text)
    if depth == 0 or dice.random() < 0.3:
        return dice.choice(leaves)
    items = [random_json(dice, depth - 1) for _ in range(dice.randrange(5))]
    return items if dice.random() < 0.5 else {f"{text}{index}": item for index, item in enumerate(items)}


@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_is_read_back(seed: int) -> None:
    value = random_json(random.Random(seed))
    assert strict_json.read_json(strict_json.write_json(value)) == value
    assert strict_json.read_json(json.dumps(value).encode()) == value


def test_json_with_any_byte_changed_is_read_or_refused_as_invalid_json() -> None:
    dice = random.Random(1)
    good = json.dumps({"a": [1, -2.5e3, "\ud83d\ude00", {"b": None}], "c": "é"}).encode()
    for _ in range(3000):
        raw = bytearray(good)
        for _ in range(dice.randrange(1, 4)):
            raw[dice.randrange(len(raw))] = dice.randrange(256)
        try:
            strict_json.read_json(raw)
        except InvalidJson:
            continue


def test_json_is_written_compact_and_as_utf8() -> None:
    assert strict_json.write_json({"a": ["é", None, 1]}) == '{"a":["é",null,1]}'.encode()


def test_nan_is_never_written() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        strict_json.write_json(float("nan"))


@pytest.mark.parametrize("text", ["", "abc", "1_0", "+5", "-1", " 5", "5 ", "５", "1e3", "0x10", "1.0", "99999999999"])
def test_integer_of_another_form_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        strict_json.read_integer(text, param="limit", low=0, high=10**12)
    assert refused.value.param == "limit"


@pytest.mark.parametrize("text", ["0", "501"])
def test_integer_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="1 to 500"):
        strict_json.read_integer(text, param="limit", low=1, high=500)


def test_integer_is_read() -> None:
    assert strict_json.read_integer("0500", param="limit", low=1, high=500) == 500


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-02", DAY),
        ("1970-01-01T00:00:00.1Z", 100),
        ("1970-01-01T00:00:00.123999999Z", 123),
        ("1970-01-01t01:00:00+01:00", 0),
        ("1969-12-31T22:30:00-01:30", 0),
        ("2024-02-29T12:00:00.5+05:30", 1_709_188_200_500),
        ("2000-02-29", 951_782_400_000),
        ("30s", 10 * DAY - 30_000),
        ("15m", 10 * DAY - 900_000),
        ("24h", 9 * DAY),
        ("7d", 3 * DAY),
        ("999999d", strict_json.FIRST_AT),
        ("1900-01-01", strict_json.FIRST_AT),
        ("9999-12-31T23:59:59.999Z", strict_json.LAST_AT),
    ],
)
def test_times_are_read_in_every_form(text: str, at: int) -> None:
    assert strict_json.read_time(text, param="since", now_at=10 * DAY) == at
    assert re.search(strict_json.TIME_PATTERN, text)


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-00:01", "1900-01-01T00:00:00+00:01"])
def test_a_time_that_is_out_of_range_in_utc_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        strict_json.read_time(text, param="since", now_at=0)
    assert refused.value.param == "since"


def test_the_first_and_the_last_time_can_be_written() -> None:
    assert strict_json.write_time(strict_json.FIRST_AT) == "1900-01-01T00:00:00.000Z"
    assert strict_json.write_time(strict_json.LAST_AT) == "9999-12-31T23:59:59.999Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "7",
        "7w",
        "-7d",
        "7 d",
        "0000001d",
        "2024-13-01",
        "2024-02-30",
        "2023-02-29",
        "1900-02-29",
        "2100-02-29",
        "1899-01-01",
        "2024-1-1",
        "2024-01-01T00:00:00",
        "2024-01-01 00:00:00Z",
        "2024-01-01T24:00:00Z",
        "2024-01-01T00:00:60Z",
        "2024-01-01T00:00:00.Z",
        "2024-01-01T00:00:00.1234567890Z",
        "2024-01-01T00:00Z",
        "2024-01-01T00:00:00+0100",
        "2024-01-01T00:00:00 01:00",
        "20240101",
        "2024-W01-1",
        "２０２４-01-01",
        "1700000000",
    ],
)
def test_nonsense_for_a_time_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        strict_json.read_time(text, param="since", now_at=0)
    assert refused.value.param == "since"
    assert not re.search(strict_json.TIME_PATTERN, text)


@pytest.mark.parametrize("text", ["2024-01-01", "7d", "now"])
def test_timestamp_is_a_whole_time_only(text: str) -> None:
    with pytest.raises(InvalidRequest):
        strict_json.read_timestamp(text, param="expires_at")
    assert not re.search(strict_json.TIMESTAMP_PATTERN, text)


@pytest.mark.parametrize("at", [0, 1, 999, 1_700_000_000_123, -1, -2_208_988_800_000, 253_402_300_799_999])
def test_time_written_is_read_back_to_the_millisecond(at: int) -> None:
    text = strict_json.write_time(at)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
    assert strict_json.read_timestamp(text, param="since") == at
