"""The rows of settings on the internal API. The rules are in `services.runtime_settings`."""

import json
import os
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from gateway import __version__, bundle
from gateway.app import Gateway
from gateway.domain.paging import Page
from gateway.domain.principals import Caller, Permission
from gateway.operations.rows import Noun, row, whole
from gateway.schema import Bounds
from gateway.services.runtime_settings import CHANGEABLE, MAX_DAYS, SettingView

SBOM = "META/sbom.cdx.json"
_Days = Annotated[int, Bounds(0, MAX_DAYS), "Days, 0 forever."]

_Changeable = Literal["retention_traffic_days", "retention_alerts_days", "retention_audit_days"]


@dataclass(frozen=True, slots=True)
class Component:
    """One bundled project. purl: its package URL."""

    name: str
    version: str
    purl: str


@dataclass(frozen=True, slots=True)
class About:
    """The running gateway.

    build: the commit it was built from. archive_sha256: of the running file; None in a checkout, which has no
    components either.
    program: the words that start this program on its host, before a command. data_dir: absolute path or ``:memory:``.
    mcp_url: where MCP is served over HTTP, None if it is off. shield_mode: whether the policy of the settings blocks
    or observes. origin: of the traffic, ``production`` or ``demo``.
    """

    version: str
    build: str
    archive_sha256: str | None
    program: tuple[str, ...]
    data_dir: str
    mcp_url: str | None
    python: str
    matcher: str
    rules: int
    local_rules: int
    rules_digest: str
    uptime_seconds: float
    rbac_enabled: bool
    shield_mode: str
    origin: str
    checks: dict[str, str]
    components: tuple[Component, ...]


async def _about(gateway: Gateway, caller: Caller, command: None) -> About:
    settings = gateway.settings
    return About(
        version=__version__,
        build=bundle.build_id(),
        archive_sha256=bundle.archive_sha256(),
        program=_program(),
        data_dir=_whole(settings.data_dir),
        mcp_url=f"http://127.0.0.1:{settings.mcp_port}/mcp" if settings.mcp_enabled else None,
        python="{}.{}.{}".format(*sys.version_info[:3]),
        matcher=gateway.shield.matcher,
        rules=len(gateway.shield.rules),
        local_rules=gateway.shield.local_count,
        rules_digest=gateway.shield.digest,
        uptime_seconds=max(0, gateway.clock.now_at() - gateway.started_at) / 1000,
        rbac_enabled=settings.rbac_enabled,
        shield_mode=settings.shield_mode,
        origin=gateway.store.traffic.origin,
        checks=await gateway.health.checks(),
        components=tuple(
            Component(part["name"], part["version"], part["purl"])
            for part in sbom().get("components", ())
            if "purl" in part
        ),
    )


def _whole(data_dir: str) -> str:
    return data_dir if data_dir == ":memory:" else os.path.abspath(data_dir)


def _program() -> tuple[str, ...]:
    archive = bundle.archive_path()
    words = ("-m", "gateway") if archive is None else (os.path.abspath(archive),)
    return (sys.executable or "python3", *words)


def sbom() -> dict[str, Any]:
    """Return the bill of materials of the archive, or an empty one in a checkout."""
    if bundle.archive_path() is None:
        return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": []}
    found: dict[str, Any] = json.loads(bundle.read(SBOM))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchSettings:
    """Settings to change without a restart. reset: names of settings that return to what the operator started with."""

    retention_traffic_days: _Days | None = None
    retention_alerts_days: _Days | None = None
    retention_audit_days: _Days | None = None
    reset: tuple[_Changeable, ...] = ()


async def _change(gateway: Gateway, caller: Caller, command: PatchSettings) -> Page[SettingView]:
    wanted: dict[str, int | None] = dict.fromkeys(command.reset)
    wanted |= {name: days for name in CHANGEABLE if (days := getattr(command, name)) is not None}
    return whole(await gateway.runtime_settings.change(caller, wanted))


ABOUT_OPERATIONS = (
    row(
        "about",
        "GET /api/about",
        Permission.SETTINGS_READ,
        "Say what this gateway is: version, hash of its file, matcher, rules, bundled parts.",
        gives=About,
        call=_about,
    ),
    row(
        "about.sbom",
        "GET /api/about/sbom",
        Permission.SETTINGS_READ,
        "Download the bill of materials of the archive (CycloneDX).",
    ),
)
_SETTINGS = Noun(
    "settings", SettingView, Permission.SETTINGS_READ, Permission.SETTINGS_MANAGE, service="runtime_settings"
)
SETTING_OPERATIONS = (
    _SETTINGS.list("List every setting with its value and where it comes from; secrets are masked."),
    _SETTINGS.row(
        "change",
        "PATCH",
        "Change without a restart: `retention_traffic_days`, `…_alerts_days`, `…_audit_days`; `reset` undoes.",
        is_list=True,
        takes=PatchSettings,
        call=_change,
    ),
)
OPERATIONS = SETTING_OPERATIONS + ABOUT_OPERATIONS
