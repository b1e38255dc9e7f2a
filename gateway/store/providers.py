"""Store providers. Their keys are elsewhere: `keyfile` holds those that an operator has typed in."""

import json
from dataclasses import asdict

from gateway.domain.prices import Price
from gateway.domain.providers import Provider
from gateway.store.table import AuthorityTable, Codec
from gateway.strict_json import json_text

PRICES = Codec(
    lambda prices: json_text({model: asdict(price) for model, price in prices.items()}),
    lambda text: {model: Price(**price) for model, price in json.loads(text).items()},
)


class ProviderRepository(AuthorityTable[Provider]):
    """The table of providers."""

    def __init__(self) -> None:
        super().__init__("providers", Provider, columns={"origin": None}, codecs={"prices": PRICES})
