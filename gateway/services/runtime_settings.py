"""The settings in effect, and those that can change at run time. The edges check who may see and change them."""

from collections.abc import Mapping
from dataclasses import Field, dataclass
from typing import Any

from gateway import settings
from gateway.domain.principals import Caller
from gateway.errors import InvalidRequest
from gateway.services.core import Service
from gateway.services.retention import Days
from gateway.settings import Settings
from gateway.store.database import Transaction
from gateway.store.store import Store

MAX_DAYS = 3650
CHANGEABLE = ("retention_traffic_days", "retention_alerts_days", "retention_audit_days")
"""Whole numbers of days, 0 for ever. Each use reads the database, so that a change reaches every process."""
_MASK = "****"
_META_PREFIX = "setting:"
_CHANGED = "changed at run time"


@dataclass(frozen=True, slots=True)
class SettingView:
    """One setting. value: masked if it is a secret. source: of the value. changeable: without a restart."""

    name: str
    variable: str
    value: object
    default: object
    source: str
    secret: bool
    changeable: bool
    about: str


class RuntimeSettings(Service):
    """Lists the settings and changes those of `CHANGEABLE`."""

    settings: Settings

    def value(self, tx: Transaction, name: str) -> int:
        """Return the value in effect of a setting of `CHANGEABLE`."""
        changed = changed_days(self.store, tx, name)
        return int(getattr(self.settings, name)) if changed is None else changed

    def days(self, tx: Transaction) -> Days:
        return Days(*(self.value(tx, f"retention_{name}_days") for name in ("traffic", "alerts", "audit")))

    async def list(self) -> tuple[SettingView, ...]:
        """Return every setting, secrets masked."""
        changed = await self.store.db.read(lambda tx: {name: changed_days(self.store, tx, name) for name in CHANGEABLE})
        return tuple(self._view(row, changed.get(row.name)) for row in settings.rows())

    async def change(self, caller: Caller, wanted: Mapping[str, int | None]) -> tuple[SettingView, ...]:
        """Set settings of `CHANGEABLE`; None undoes a change. Return every setting.

        Raises:
            InvalidRequest: another setting, or a number out of bounds. AuditUnavailable: nothing was changed.
        """
        for name, days in wanted.items():
            if name not in CHANGEABLE:
                raise InvalidRequest(f"{name[:64]} cannot be changed at run time.", param=name[:64])
            if days is not None and not 0 <= days <= MAX_DAYS:
                raise InvalidRequest(f"{name} must be 0 to {MAX_DAYS} days.", param=name)

        def work(tx: Transaction) -> None:
            for name, days in wanted.items():
                before = self.value(tx, name)
                self.store.meta.set(tx, _META_PREFIX + name, "" if days is None else str(days))
                after = self.value(tx, name)
                if before != after:
                    shown = {"before": {"value": before}, "after": {"value": after}}
                    self.audit.append_change(tx, "setting_changed", caller, "setting", name, **shown)

        await self.audit.commit(work)
        return await self.list()

    def _view(self, row: Field[Any], changed: int | None) -> SettingView:
        name = row.name
        value = getattr(self.settings, name) if changed is None else changed
        is_secret = bool(row.metadata["secret"])
        return SettingView(
            name=name,
            variable=settings.variable(row),
            value=(_MASK if value else None) if is_secret else list(value) if isinstance(value, tuple) else value,
            default=list(row.default) if isinstance(row.default, tuple) else row.default,
            source=self.settings.sources.get(name, "default") if changed is None else _CHANGED,
            secret=is_secret,
            changeable=name in CHANGEABLE,
            about=str(row.metadata["about"]),
        )


def changed_days(store: Store, tx: Transaction, name: str) -> int | None:
    """Return the value that was set at run time, or None."""
    text = store.meta.get(tx, _META_PREFIX + name)
    return int(text) if text else None
