"""What tokens cost: prices by glob of model, and the worst a request can take. Pure; whole micro-dollars, no fractions.

A price is dollars for a million tokens, which is micro-dollars a token; rounded to six decimals it is a whole number
of micro-dollars for a million tokens. A cost is rounded up once, over prompt and reply together. Discounts, such as
for cached prompts, are not looked at: what is counted is never less than what is billed at these prices.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from gateway.domain.budgets import MICRO, glob
from gateway.errors import InvalidRequest
from gateway.field_types import is_line

MAX_PRICES = 1000
MAX_USD = 1_000_000
MAX_REPLY_TOKENS = 10_000_000
_MAX_NAME_CHARS = 256


@dataclass(frozen=True, slots=True)
class Price:
    """What one model costs. input, output: micro-dollars for a million tokens. max_reply_tokens: of one choice."""

    input: int
    output: int
    max_reply_tokens: int | None = None

    def cost_microusd(self, prompt_tokens: int, reply_tokens: int) -> int:
        """Return what a completion costs, rounded up."""
        return -(-(prompt_tokens * self.input + reply_tokens * self.output) // MICRO)


class Prices:
    """Prices by glob, matched without regard to case. Of one table the longest glob that matches a model counts.

    tables: the first that knows a model decides. A model's name that holds a ``/`` is also looked for without what
    stands before the last one: ``openai/gpt-4o``.
    """

    __slots__ = ("_entries", "_found")

    def __init__(self, *tables: Mapping[str, Price]) -> None:
        self._entries = tuple(
            (pattern, price)
            for table in tables
            for pattern, price in sorted(table.items(), key=lambda entry: (-len(entry[0]), entry[0]))
        )
        self._found: dict[str, Price | None] = {}

    def find(self, model: str, own: "Prices | None" = None) -> Price | None:
        """Return the price of a model. Those that are asked for again and again are not looked for again.

        own: of the one who is paid; what is in them comes before these.
        """
        if own is not None and (price := own.find(model)) is not None:
            return price
        try:
            return self._found[model]
        except KeyError:
            if len(self._found) >= MAX_PRICES:
                self._found.clear()
            found = self._found[model] = self._look_for(model.casefold())
            return found

    def _look_for(self, name: str) -> Price | None:
        for text, price in self._entries:
            pattern = glob(text)  # compiled for the first model that is looked for, not at the start
            if pattern.match(name) or ("/" in name and pattern.match(name.rpartition("/")[2])):
                return price
        return None


def read_prices(value: object, *, param: str = "prices") -> Mapping[str, Price]:
    """Read ``{"gpt-4o*": {"input": 2.5, "output": 10, "max_reply_tokens": 16384}}``, dollars for a million tokens.

    Raises:
        InvalidRequest: it is not of that shape; `param` says where.
    """
    if not isinstance(value, Mapping) or len(value) > MAX_PRICES:
        raise InvalidRequest(f"{param} must be an object of at most {MAX_PRICES} models.", param=param)
    return {name: _price(name, entry, param) for name, entry in value.items()}


def to_micro(value: object, *, param: str, most: int = MAX_USD) -> int:
    """Return dollars as micro-dollars: exactly as they were written, with more than six decimals rounded half to even.

    Raises:
        InvalidRequest: less than nothing, or more than `most`.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not 0 <= value <= most:
        raise InvalidRequest(f"{param} must be a number from 0 to {most}.", param=param)
    # The shortest text of a float is what was typed; the float itself is not.
    return int((Decimal(str(value)) * MICRO).to_integral_value(ROUND_HALF_EVEN))


def reply_bound(body: Mapping[str, object], default: int) -> int:
    """Return the most tokens that all choices of a reply may have. default: of a choice without a limit of its own."""
    limits = [body.get(name) for name in ("max_completion_tokens", "max_tokens")]
    wanted = [limit for limit in limits if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0]
    # Some providers obey only one of the two names.
    count = body.get("n")
    return (max(wanted) if wanted else default) * (count if isinstance(count, int) and count > 0 else 1)


def _price(name: object, entry: object, param: str) -> Price:
    if not isinstance(name, str) or not 1 <= len(name) <= _MAX_NAME_CHARS or not is_line(name):
        raise InvalidRequest(f"A model's name must be 1 to {_MAX_NAME_CHARS} printable characters.", param=param)
    place = f"{param}.{name[:64]}"
    if not isinstance(entry, Mapping) or not {"input", "output"} <= set(entry) <= {
        "input",
        "output",
        "max_reply_tokens",
    }:
        raise InvalidRequest(f"{place} must have input and output, and may have max_reply_tokens.", param=place)
    most = entry.get("max_reply_tokens")
    if most is not None and (type(most) is not int or not 1 <= most <= MAX_REPLY_TOKENS):
        raise InvalidRequest(
            f"max_reply_tokens must be a whole number from 1 to {MAX_REPLY_TOKENS}.", param=f"{place}.max_reply_tokens"
        )
    return Price(
        to_micro(entry["input"], param=f"{place}.input"), to_micro(entry["output"], param=f"{place}.output"), most
    )
