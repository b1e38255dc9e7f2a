"""Store providers. Their keys are elsewhere: `keyfile` holds those that an operator has typed in."""

import json
from dataclasses import asdict

from gateway.domain.prices import Price
from gateway.domain.providers import Provider
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Transaction
from gateway.store.table import AuthorityTable, Codec
from gateway.strict_json import json_text

PROVIDERS = AuthorityTable(
    "providers",
    Provider,
    columns={"origin": None},
    codecs={
        "prices": Codec(
            lambda prices: json_text({model: asdict(price) for model, price in prices.items()}),
            lambda text: {model: Price(**price) for model, price in json.loads(text).items()},
        )
    },
    changes=(
        "name", "type", "base_url", "key_reference", "models", "priority", "weight", "timeout_seconds", "max_retries",
        "prices", "enabled", "allow_private",
    ),
)  # fmt: skip
BY_NAME = PROVIDERS.select("WHERE lower(name) = :folded")


class ProviderRepository:
    """The table of providers."""

    def insert(self, tx: AuthorityTransaction, provider: Provider) -> None:
        """Insert a provider with a name that is not taken."""
        PROVIDERS.insert(tx, provider)

    def all(self, tx: Transaction) -> tuple[Provider, ...]:
        """Return all providers, oldest first."""
        return PROVIDERS.all(tx)

    def count(self, tx: Transaction) -> int:
        """Count the providers."""
        return PROVIDERS.count(tx)

    def find(self, tx: Transaction, id_or_name: str) -> Provider | None:
        """Return the provider of this id, else of this name, whatever its case."""
        found = PROVIDERS.find(tx, id_or_name)
        if found is None and id_or_name.isascii():
            found = PROVIDERS.one(tx, BY_NAME, folded=id_or_name.lower())
        return found

    def change(self, tx: AuthorityTransaction, provider: Provider) -> None:
        """Write all but id and maker, and raise the version."""
        PROVIDERS.update(tx, provider)

    def remove(self, tx: AuthorityTransaction, provider_id: str) -> None:
        """Delete a provider."""
        PROVIDERS.delete(tx, provider_id)
