"""Every SQL statement about sign-ins that failed. How long they make others wait is decided in `auth.throttle`."""

from dataclasses import dataclass

from gateway.store.database import Transaction

INSERT = "INSERT INTO sign_in_failures (account, network, failed_at) VALUES (:account, :network, :failed_at)"
OF_ACCOUNT = """
    SELECT failed_at FROM sign_in_failures
     WHERE account = :account AND network = :network AND failed_at > :since
     ORDER BY failed_at DESC LIMIT :limit
"""
OF_NETWORK = """
    SELECT failed_at FROM sign_in_failures
     WHERE network = :network AND failed_at > :since
     ORDER BY failed_at DESC LIMIT :limit
"""
FORGET = "DELETE FROM sign_in_failures WHERE account = :account AND network = :network"
PRUNE = "DELETE FROM sign_in_failures WHERE failed_at <= :before"


@dataclass(frozen=True, slots=True)
class SignInPlace:
    """Who tried from where. account: SHA-256 of the name as typed. network: what `auth.throttle.network_of` said."""

    account: str
    network: str


class SignInFailureRepository:
    """The table of sign-ins that failed, or may yet fail: one is counted before its password is looked at."""

    def of_account(self, tx: Transaction, place: SignInPlace, *, since: int, limit: int) -> tuple[int, ...]:
        """Return when the last failures of this account from this network were, newest first."""
        values = {"account": place.account, "network": place.network, "since": since, "limit": limit}
        return tuple(int(row["failed_at"]) for row in tx.query(OF_ACCOUNT, values))

    def of_network(self, tx: Transaction, network: str, *, since: int, limit: int) -> tuple[int, ...]:
        """Return when the last failures from this network were, newest first."""
        rows = tx.query(OF_NETWORK, {"network": network, "since": since, "limit": limit})
        return tuple(int(row["failed_at"]) for row in rows)

    def insert(self, tx: Transaction, place: SignInPlace, *, failed_at: int) -> None:
        """Count a failure."""
        tx.execute(INSERT, {"account": place.account, "network": place.network, "failed_at": failed_at})

    def forget(self, tx: Transaction, place: SignInPlace) -> None:
        """Forget the failures of this account from this network."""
        tx.execute(FORGET, {"account": place.account, "network": place.network})

    def prune(self, tx: Transaction, *, before: int) -> None:
        """Drop what is too old to count."""
        tx.execute(PRUNE, {"before": before})
