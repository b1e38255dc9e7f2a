"""The one strict reader and writer each for JSON, integers and times. Pure; knows no record and no transport."""

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from gateway.errors import InvalidJson, InvalidRequest, TooManyValues

MAX_DEPTH = 64
MAX_VALUES = 100_000
INT64_LOW = -(2**63)
INT64_HIGH = 2**63 - 1
FIRST_AT, LAST_AT = -2_208_988_800_000, 253_402_300_799_999
"""The first and the last time that is read, in Unix milliseconds: the years 1900 to 9999 in UTC. All can be written."""

_LONG_MONTH = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
_SHORT_MONTH = "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
_MONTH_AND_DAY = f"(?:{_LONG_MONTH}|{_SHORT_MONTH}|02-(?:0[1-9]|1[0-9]|2[0-8]))"
_LEAP_YEAR = "(?:(?:19|[2-9][0-9])(?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[3579][26])00)"
_DATE = f"(?:(?:19|[2-9][0-9])[0-9]{{2}}-{_MONTH_AND_DAY}|{_LEAP_YEAR}-02-29)"
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_OFFSET = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"

# Without named groups, so that the same text stands in JSON Schemas, whose regexes are ECMA-262's.
TIMESTAMP_PATTERN = f"^{_DATE}[Tt]{_CLOCK}(?:\\.[0-9]{{1,9}})?{_OFFSET}$"
"""RFC 3339 date-time of the years 1900 to 9999, with any offset."""
TIME_PATTERN = f"^(?:{_DATE}(?:[Tt]{_CLOCK}(?:\\.[0-9]{{1,9}})?{_OFFSET})?|[0-9]{{1,6}}[smhd])$"
"""What `read_time` reads: a date-time, a plain date, or an age."""

_TIMESTAMP = re.compile(TIMESTAMP_PATTERN[1:-1])
_DAY = re.compile(_DATE)
_AGE = re.compile("([0-9]{1,6})([smhd])")
_AGE_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_INTEGER = re.compile("[0-9]{1,10}")
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_TOO_DEEP = f"The JSON is nested deeper than {MAX_DEPTH} levels."
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def read_json(raw: bytes | bytearray | memoryview, *, max_values: int = MAX_VALUES) -> object:
    """Read one strict JSON text.

    Objects become dict, arrays list; numbers int or float. Never raises RecursionError or ValueError. A text of more
    than some 64 KiB is better read in a worker thread.

    Raises:
        TooManyValues: more than `max_values`; found before anything is made of them.
        InvalidJson: bad UTF-8, a byte order mark, duplicate keys, NaN or Infinity (1e999 too), a lone surrogate, an
            integer beyond 64 signed bits, more than 64 levels, or any other syntax than RFC 8259's.
    """
    try:
        text = str(raw, "utf-8")
    except UnicodeDecodeError as error:
        raise InvalidJson(f"The JSON is not UTF-8 (byte {error.start}).") from None
    if len(text) > max_values:
        _refuse_many(text, max_values)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise InvalidJson(f"The text is not valid JSON (line {error.lineno}, column {error.colno}).") from None
    except RecursionError:  # the C parser counts its levels and stops, near 1,000 or 10,000 by version
        raise InvalidJson(_TOO_DEEP) from None
    # Counting is a memory scan: only a text with more brackets than levels needs a closer look.
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _refuse_deep(value, MAX_DEPTH)
    # A search for one character is a scan of the memory, for two it is not.
    if "\\" in text and "\\u" in text and ("\\ud" in text or "\\uD" in text):
        try:
            write_json(value)
        except UnicodeEncodeError:
            raise InvalidJson("The JSON holds half of a surrogate pair.") from None
    return value


def write_json(value: object) -> bytes:
    """Return `value` as compact UTF-8 JSON. NaN, Infinity and lone surrogates raise ValueError."""
    return json_text(value).encode()


def read_integer(text: str, *, param: str, low: int, high: int) -> int:
    """Read 1 to 10 ASCII digits: no sign, no blank, no underscore.

    Raises:
        InvalidRequest: another form, or outside `low` to `high`.
    """
    if _INTEGER.fullmatch(text) is None or not low <= int(text) <= high:
        raise InvalidRequest(f"{param} must be a whole number from {low} to {high}.", param=param)
    return int(text)


def read_timestamp(text: str, *, param: str) -> int:
    """Read an RFC 3339 date-time with any offset as Unix milliseconds; digits below a millisecond are cut off.

    Raises:
        InvalidRequest: another form, no such day, or a year before 1900 or after 9999, in UTC as well.
    """
    if _TIMESTAMP.fullmatch(text) is None:
        raise InvalidRequest(f"{param} must be an RFC 3339 time such as 2026-01-31T12:00:00Z.", param=param)
    at = (datetime.fromisoformat(text.upper()) - _EPOCH) // _MILLISECOND
    if not FIRST_AT <= at <= LAST_AT:
        raise InvalidRequest(f"{param} must be in the years 1900 to 9999, in UTC.", param=param)
    return at


def read_age(text: str) -> int | None:
    """Return the milliseconds of an age such as 45s, 15m, 24h or 7d; None when the text is none."""
    age = _AGE.fullmatch(text)
    return None if age is None else int(age[1]) * _AGE_MS[age[2]]


def read_time(text: str, *, param: str, now_at: int) -> int:
    """Read an RFC 3339 date-time, a plain date (its midnight, UTC) or an age before `now_at` such as 15m, 24h or 7d.

    Raises:
        InvalidRequest: none of these.
    """
    if (age := read_age(text)) is not None:
        return max(now_at - age, FIRST_AT)
    if _DAY.fullmatch(text) is not None:
        return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
    if _TIMESTAMP.fullmatch(text) is None:
        raise InvalidRequest(
            f"{param} must be an RFC 3339 time such as 2026-01-31T12:00:00Z, a date, or an age such as 15m, 24h or 7d.",
            param=param,
        )
    return read_timestamp(text, param=param)


def write_time(at: int) -> str:
    """Return Unix milliseconds as RFC 3339 in UTC with milliseconds and ``Z``."""
    return (_EPOCH + at * _MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _refuse_many(text: str, max_values: int) -> None:
    """Count what separates values: at first everywhere, which costs next to nothing, then outside of strings alone."""
    if _separators(text) <= max_values:
        return
    # No more strings than this are looked for; each but the first has a separator before it, or a colon.
    strings = (text.count('"') - text.count('\\"')) // 2
    if strings > 2 * max_values + 1 or _separators(_STRING.sub("", text)) > max_values:
        raise TooManyValues(f"The JSON holds more than {max_values} values.")


def _separators(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


def _refuse_deep(value: object, levels: int) -> None:
    if isinstance(value, dict | list):
        if not levels:
            raise InvalidJson(_TOO_DEEP)
        for child in value.values() if isinstance(value, dict) else value:
            _refuse_deep(child, levels - 1)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise InvalidJson("The JSON has the same key twice in one object.")
    return record


def _integer(digits: str) -> int:
    # 20 characters hold every 64-bit integer; longer ones are never converted, which would take quadratic time.
    if len(digits) > 20 or not INT64_LOW <= (value := int(digits)) <= INT64_HIGH:
        raise InvalidJson("The JSON holds an integer beyond 64 bits.")
    return value


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise InvalidJson("The JSON holds a number beyond double precision.")
    return value


def _constant(name: str) -> float:
    raise InvalidJson(f"The JSON holds {name}, which is no number.")


def json_writer(*, sort_keys: bool = False) -> Callable[[object], str]:
    """Return a function that writes a value as compact JSON; NaN and Infinity raise ValueError."""
    return json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=sort_keys, separators=(",", ":")).encode


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)
json_text = json_writer()
"""Write a value as compact JSON text; see `write_json`."""
