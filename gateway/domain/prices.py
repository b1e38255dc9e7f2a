"""Prices of tokens by model glob, and the highest cost of a request. Pure; integers of micro-dollars, no fractions.

A price is in dollars for a million tokens, which equals micro-dollars for one token. Rounded to six decimals it is an
integer of micro-dollars for a million tokens. A cost is rounded up once, over prompt and reply together. Discounts,
such as for cached prompts, are ignored: at these prices the counted cost is never below the billed cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache

from gateway.domain.budgets import MICRO
from gateway.domain.globs import glob
from gateway.errors import InvalidRequest
from gateway.field_types import is_line

MAX_PRICES = 1000
MAX_USD = 1_000_000
MAX_REPLY_TOKENS = 10_000_000
_MAX_NAME_CHARS = 256


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one model. input, output: micro-dollars for a million tokens. max_reply_tokens: of one choice."""

    input: int
    output: int
    max_reply_tokens: int | None = None

    def cost_microusd(self, prompt_tokens: int, reply_tokens: int) -> int:
        return -(-(prompt_tokens * self.input + reply_tokens * self.output) // MICRO)


class Prices:
    """Prices by glob, matched without regard to case. Within one table the longest glob that matches a model wins.

    tables: the first one with a match decides. A model such as ``openai/gpt-4o`` also matches without the part before
    its last ``/``.
    """

    def __init__(self, *tables: Mapping[str, Price]) -> None:
        self._entries = tuple(
            (glob(pattern), price)
            for table in tables
            for pattern, price in sorted(table.items(), key=lambda entry: (-len(entry[0]), entry[0]))
        )
        self._find = lru_cache(1000)(self._look_up)  # a table may hold 1,000 globs, and each chat asks twice

    def find(self, model: str, own: "Prices | None" = None) -> Price | None:
        """Return the price of a model. own: the prices of the provider, which come first."""
        if own is not None and (price := own.find(model)) is not None:
            return price
        return self._find(model)

    def _look_up(self, model: str) -> Price | None:
        names = {model.casefold(), model.casefold().rpartition("/")[2]}
        return next((price for pattern, price in self._entries if any(map(pattern.match, names))), None)


def read_prices(value: object, *, param: str = "prices") -> Mapping[str, Price]:
    """Decode ``{"gpt-4o*": {"input": 2.5, "output": 10, "max_reply_tokens": 16384}}``, dollars for a million tokens.

    Raises:
        InvalidRequest: the value has another shape. `param` names the place.
    """
    if not isinstance(value, Mapping) or len(value) > MAX_PRICES:
        raise InvalidRequest(f"{param} must be an object of at most {MAX_PRICES} models.", param=param)
    return {name: _price(name, entry, param) for name, entry in value.items()}


def to_micro(value: object, *, param: str, most: int = MAX_USD) -> int:
    """Return dollars as micro-dollars. Six decimals are exact; further ones are rounded half to even.

    Raises:
        InvalidRequest: the value is below 0 or above `most`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not 0 <= value <= most:
        raise InvalidRequest(f"{param} must be a number from 0 to {most}.", param=param)
    # Decimal of the shortest text of a float is the number that was typed; Decimal of the float is not.
    return int((Decimal(str(value)) * MICRO).to_integral_value(ROUND_HALF_EVEN))


def reply_bound(body: Mapping[str, object], default: int) -> int:
    """Return the most tokens that all choices of a reply may have. default: for a choice without a limit of its own."""
    limits = [body.get(name) for name in ("max_completion_tokens", "max_tokens")]
    wanted = [limit for limit in limits if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0]
    # Some providers obey only one of the two names.
    count = body.get("n")
    return (max(wanted) if wanted else default) * (count if isinstance(count, int) and count > 0 else 1)


def _price(name: object, entry: object, param: str) -> Price:
    if not isinstance(name, str) or not 1 <= len(name) <= _MAX_NAME_CHARS or not is_line(name):
        raise InvalidRequest(f"A model's name must be 1 to {_MAX_NAME_CHARS} printable characters.", param=param)
    place = f"{param}.{name[:64]}"
    needed = {"input", "output"}
    if not isinstance(entry, Mapping) or not needed <= set(entry) <= needed | {"max_reply_tokens"}:
        raise InvalidRequest(f"{place} must have input and output, and may have max_reply_tokens.", param=place)
    most = entry.get("max_reply_tokens")
    if most is not None and (type(most) is not int or not 1 <= most <= MAX_REPLY_TOKENS):
        raise InvalidRequest(
            f"max_reply_tokens must be a whole number from 1 to {MAX_REPLY_TOKENS}.", param=f"{place}.max_reply_tokens"
        )
    return Price(
        to_micro(entry["input"], param=f"{place}.input"), to_micro(entry["output"], param=f"{place}.output"), most
    )
