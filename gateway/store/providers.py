"""Every SQL statement about providers. Their keys are not here: `keyfile` holds those that were typed in."""

import json
from dataclasses import asdict

from gateway.domain.prices import Price
from gateway.domain.providers import Provider, ProviderType
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Row, Transaction

_COLUMNS = """
    id, name, type, base_url, key_reference, models, priority, weight, timeout_seconds, max_retries, prices, enabled,
    allow_private, created_at, created_by, version
"""
INSERT = f"""
    INSERT INTO providers ({_COLUMNS})
    VALUES (:id, :name, :type, :base_url, :key_reference, :models, :priority, :weight, :timeout_seconds, :max_retries,
            :prices, :enabled, :allow_private, :created_at, :created_by, :version)
"""  # noqa: S608  # our own column names
ALL = f"SELECT {_COLUMNS} FROM providers ORDER BY id"  # noqa: S608
BY_ID = f"SELECT {_COLUMNS} FROM providers WHERE id = :id"  # noqa: S608
BY_NAME = f"SELECT {_COLUMNS} FROM providers WHERE lower(name) = :folded"  # noqa: S608
VERSIONS = "SELECT id, version FROM providers ORDER BY id"
COUNT = "SELECT COUNT(*) AS count FROM providers"
CHANGE = """
    UPDATE providers
       SET name = :name, type = :type, base_url = :base_url, key_reference = :key_reference, models = :models,
           priority = :priority, weight = :weight, timeout_seconds = :timeout_seconds, max_retries = :max_retries,
           prices = :prices, enabled = :enabled, allow_private = :allow_private, version = version + 1
     WHERE id = :id
"""
REMOVE = "DELETE FROM providers WHERE id = :id"


class ProviderRepository:
    """The table of providers."""

    def insert(self, tx: AuthorityTransaction, provider: Provider) -> None:
        """Insert a provider whose name none has."""
        made = {"created_at": provider.created_at, "created_by": provider.created_by, "version": provider.version}
        tx.change(INSERT, _values(provider) | made)

    def all(self, tx: Transaction) -> tuple[Provider, ...]:
        """Return all providers, oldest first."""
        return tuple(_record(row) for row in tx.query(ALL))

    def versions(self, tx: Transaction) -> tuple[tuple[str, int], ...]:
        """Return id and version of each, in the order of `all`."""
        return tuple((row["id"], row["version"]) for row in tx.query(VERSIONS))

    def count(self, tx: Transaction) -> int:
        """Return how many providers there are."""
        return int(tx.query(COUNT)[0]["count"])

    def find(self, tx: Transaction, id_or_name: str) -> Provider | None:
        """Return the provider of this id, else of this name, whatever the case of its letters."""
        rows = tx.query(BY_ID, {"id": id_or_name})
        if not rows and id_or_name.isascii():
            rows = tx.query(BY_NAME, {"folded": id_or_name.lower()})
        return _record(rows[0]) if rows else None

    def change(self, tx: AuthorityTransaction, provider: Provider) -> None:
        """Write all but id and maker, and raise the version."""
        tx.change(CHANGE, _values(provider))

    def remove(self, tx: AuthorityTransaction, provider_id: str) -> None:
        """Delete a provider."""
        tx.change(REMOVE, {"id": provider_id})


def _values(provider: Provider) -> dict[str, object]:
    return {
        "id": provider.id,
        "name": provider.name,
        "type": provider.type.value,
        "base_url": provider.base_url,
        "key_reference": provider.key_reference,
        "models": json.dumps(provider.models, ensure_ascii=False),
        "priority": provider.priority,
        "weight": provider.weight,
        "timeout_seconds": provider.timeout_seconds,
        "max_retries": provider.max_retries,
        "prices": json.dumps({model: asdict(price) for model, price in provider.prices.items()}, ensure_ascii=False),
        "enabled": int(provider.enabled),
        "allow_private": int(provider.allow_private),
    }


def _record(row: Row) -> Provider:
    return Provider(
        id=row["id"],
        name=row["name"],
        type=ProviderType(row["type"]),
        base_url=row["base_url"],
        key_reference=row["key_reference"],
        models=tuple(json.loads(row["models"])),
        priority=row["priority"],
        weight=row["weight"],
        timeout_seconds=row["timeout_seconds"],
        max_retries=row["max_retries"],
        prices={model: Price(**price) for model, price in json.loads(row["prices"]).items()},
        enabled=bool(row["enabled"]),
        allow_private=bool(row["allow_private"]),
        created_at=row["created_at"],
        created_by=row["created_by"],
        version=row["version"],
    )
