"""The table of list prices that travels with the program, and the operator's own over it. Knows no request."""

from collections.abc import Mapping

from gateway import bundle
from gateway.domain.prices import Price, Prices, read_prices
from gateway.errors import InvalidJson, InvalidRequest, SetupError
from gateway.strict_json import read_json

TABLE = "gateway/llm/prices.json"


def load_prices(path: str | None = None) -> Prices:
    """Return the shipped prices, and over them those of the file at `path`, which has the same shape.

    Raises:
        SetupError: the file cannot be used; the message says why.
    """
    shipped = _entries(bundle.read(TABLE))
    if path is None:
        return Prices(shipped)
    try:
        with open(path, "rb") as file:
            return Prices(_entries(file.read()), shipped)
    except OSError as error:
        raise SetupError(f"The prices {path} cannot be read ({error.strerror}).") from error
    except (InvalidJson, InvalidRequest) as error:
        raise SetupError(f"The prices {path} cannot be used: {error.message}") from error


def _entries(raw: bytes) -> Mapping[str, Price]:
    value = read_json(raw)
    if not isinstance(value, dict) or not {"models"} <= set(value) <= {"models", "provenance", "unit"}:
        raise InvalidRequest("it must be an object with `models`, and may have `provenance` and `unit`.")
    return read_prices(value["models"], param="models")
