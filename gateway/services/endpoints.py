"""The base of services for records of servers that the gateway asks: their address, their key and their circuit."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from gateway.domain.addresses import check_host, read_base_url
from gateway.domain.keys import KEEP_TEXT
from gateway.domain.principals import Caller, Principal
from gateway.domain.providers import key_source, read_key
from gateway.errors import InvalidRequest
from gateway.schema import check
from gateway.services.circuits import Circuits
from gateway.services.provider_keys import STORED, KeyedResource, ProviderKeys
from gateway.services.resource import R, as_conflict, check_version, patched
from gateway.store.authority import AuthorityTransaction

Resolve = Callable[[str], Awaitable[Sequence[str]]]
"""From a base URL to the present addresses of its host; none if they cannot be resolved."""


class Endpoints(KeyedResource[R]):
    """The records of one noun, each with a base URL. Their keys are write-only."""

    name_field = "name"
    is_found_by_name = True

    circuits: Circuits
    keys: ProviderKeys
    resolve: Resolve

    def _blank(self, principal: Principal, new: Any) -> R:
        """Return the record before the fields of `new`."""
        raise NotImplementedError

    def _computed(self, record: R, changes: Any) -> Mapping[str, object]:
        """Return the fields that `changes` does not hold as the record does."""
        return {}

    def _check_together(self, record: R) -> None:
        """Raise InvalidRequest for fields that do not go together. `param` names one."""

    def _check_change(self, record: R, changes: Any) -> None:
        """Raise Conflict for a change that this record cannot have."""

    async def create(self, caller: Caller, new: Any) -> R:
        """Create a record. Raises what `Resource.create` raises."""
        record, key = self._patched(self._blank(caller.principal, new), new)
        await self._check_addresses(record)
        return await self._commit_with_key(caller, lambda tx: self._insert(tx, record), record.key_reference, key)

    async def change(self, caller: Caller, name: str, changes: Any) -> R:
        """Change a record. Raises what `Resource.change` raises, Conflict also for a change that it cannot have."""
        known: Any = await self.show(name)
        check_version(changes.version, known.version, self.noun)
        self._check_change(known, changes)
        after, key = self._patched(known, changes)
        if (after.base_url, after.allow_private) != (known.base_url, known.allow_private):
            await self._check_addresses(after)

        # The version is that of the record that was checked, so that no other change in between is lost.
        return await self._commit_with_key(
            caller, lambda tx: self._update(tx, known.id, known.version, lambda before: after), after.key_reference, key
        )

    async def record_test(self, caller: Caller, record: Any, *, error: str | None) -> None:
        """Record a test. error: why it failed, or None. Raises AuditUnavailable."""
        details = {"name": record.name, "ok": error is None, "error": error}
        await self.audit.commit_authority(caller, lambda tx: self._append(tx, "tested", record.id, details=details))

    def _write(self, tx: AuthorityTransaction, before: Any, after: Any) -> dict[str, object] | None:
        self._repository.change(tx, after)
        if not after.enabled:
            self.circuits.end_alert(tx, after, f"The {self.noun} was disabled.")
        if before.key_reference == after.key_reference:
            return None
        self._drop_key(tx, before)
        return {"api_key": "replaced"}

    def _check_removal(self, tx: AuthorityTransaction, record: Any) -> None:
        self._drop_key(tx, record)
        self.circuits.end_alert(tx, record, f"The {self.noun} was removed.")

    def _shown(self, record: Any) -> dict[str, object]:
        return super()._shown(record) | {"api_key_source": key_source(record.key_reference)}

    def _patched(self, record: Any, changes: Any) -> tuple[Any, str | None]:
        """Return the record with its changes, checked, and the key itself if one was given."""
        check(changes)
        reference, key = record.key_reference, None
        if changes.api_key != KEEP_TEXT:
            reference, key = (None, None) if changes.api_key is None else read_key(changes.api_key)
            if key is not None:
                reference = f"{STORED}{self.ids.new('key')}"
            self.keys.check(reference, param="api_key")
        computed = dict(self._computed(record, changes))
        if changes.base_url is not None or changes.allow_private is not None:
            base_url = changes.base_url or record.base_url
            allow_private = record.allow_private if changes.allow_private is None else changes.allow_private
            if base_url:
                with as_conflict(changes.base_url is None):
                    computed["base_url"] = read_base_url(base_url, allow_private=allow_private)
        name = record.name if changes.name is None else changes.name.strip()
        after = patched(record, changes, name=name, key_reference=reference, **computed)
        self._check_together(after)
        if changes.api_key == KEEP_TEXT:
            _check_key_stays(record, after)
        return after, key

    async def _check_addresses(self, record: Any) -> None:
        """Resolve the host now, so that a mistake shows at once. Each connection checks the addresses again."""
        if record.base_url is None:
            return
        for address in await self.resolve(record.base_url):
            check_host(address, allow_private=record.allow_private)


def _check_key_stays(before: Any, after: Any) -> None:
    """Refuse to send a key to another origin than it was given for, unless the change gives it again.

    Otherwise anyone who may change a record could read its key.
    """
    if not before.base_url or not after.base_url or before.key_reference is None:
        return
    if _origin(urlsplit(before.base_url)) != _origin(urlsplit(after.base_url)):
        raise InvalidRequest(
            "base_url names another origin: send api_key again in the same call. A key belongs to the origin it was "
            "given for.",
            param="api_key",
        )


def _origin(url: SplitResult) -> tuple[str, str | None, int]:
    return url.scheme, url.hostname, url.port or (443 if url.scheme == "https" else 80)
