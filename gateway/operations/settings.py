"""The rows of settings on the internal API. The rules are in `services.runtime_settings`."""

from dataclasses import dataclass
from typing import Annotated, Literal

from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.principals import Permission, Principal, RequestContext
from gateway.operations.operation import Answer
from gateway.operations.rows import row, whole
from gateway.schema import Bounds
from gateway.services.runtime_settings import CHANGEABLE, MAX_DAYS, SettingView

_Days = Annotated[int, Bounds(0, MAX_DAYS), "Days, 0 for ever."]

_Changeable = Literal["retention_traffic_days", "retention_alerts_days", "retention_audit_days"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSettings:
    """Settings to change without a restart. reset: names of settings that return to what the operator started with."""

    retention_traffic_days: _Days | None = None
    retention_alerts_days: _Days | None = None
    retention_audit_days: _Days | None = None
    reset: tuple[_Changeable, ...] = ()


async def list_settings(gateway: Gateway, who: Principal, command: None, context: RequestContext) -> Page[SettingView]:
    """Return all settings as one page."""
    return whole(await gateway.runtime_settings.list())


async def change_settings(
    gateway: Gateway, who: Principal, command: PatchSettings, context: RequestContext
) -> Page[SettingView]:
    """Change settings and return all as one page."""
    wanted: dict[str, int | None] = dict.fromkeys(command.reset)
    wanted |= {name: days for name in CHANGEABLE if (days := getattr(command, name)) is not None}
    return whole(await gateway.runtime_settings.change(who, wanted, context))


SETTING_OPERATIONS = (
    row(
        "settings.list",
        "GET /api/settings",
        Permission.SETTINGS_READ,
        "List every setting with its value and where it comes from; secrets are masked.",
        answer=Answer.PAGE,
        gives=SettingView,
        call=list_settings,
    ),
    row(
        "settings.change",
        "PATCH /api/settings",
        Permission.SETTINGS_MANAGE,
        "Change without a restart: `retention_traffic_days`, `…_alerts_days`, `…_audit_days`; `reset` undoes.",
        answer=Answer.PAGE,
        takes=PatchSettings,
        gives=SettingView,
        call=change_settings,
    ),
)
