"""The one place where every part is made and handed to the next. Nothing else knows who is made of what."""

import os
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace

import anyio

from gateway import __version__, shield
from gateway.app import Gateway
from gateway.auth.ratelimit import RateLimiter
from gateway.clock import Clock, Ids, SystemClock, SystemIds
from gateway.domain.policies import OutboundAction, ShieldMode, ShieldPolicy, Unscannable
from gateway.errors import SetupError
from gateway.http.client import Client
from gateway.llm.echo import EchoModel
from gateway.llm.openai import OpenAiDialect
from gateway.llm.upstream import HttpUpstream, UpstreamLimits
from gateway.log import Log
from gateway.metrics import Board, Metrics
from gateway.services.access_guard import AccessGuard
from gateway.services.access_list import AccessList
from gateway.services.alerts import Alerts
from gateway.services.audit import Audit
from gateway.services.authentication import Authentication
from gateway.services.chat import Chat
from gateway.services.first_start import FirstStart
from gateway.services.health import Health, WatchedUpstream
from gateway.services.keys import Keys
from gateway.services.passwords import Passwords
from gateway.services.policies import Policies
from gateway.services.posture import Posture
from gateway.services.refusals import Refusals
from gateway.services.scans import Scans
from gateway.services.shield_tests import ShieldTests
from gateway.services.sign_in_throttle import SignInThrottle
from gateway.services.signin import SignIn
from gateway.services.users import Users
from gateway.settings import Settings
from gateway.shield import Shield
from gateway.shield.rules import RuleError
from gateway.store.store import Store, open_store

DATABASE = "gateway.db"
_UNTIL_RESTART = (
    "host", "port", "workers", "data_dir", "tls_cert", "tls_key", "allowed_hosts", "drain_seconds", "log_level",
    "mcp_enabled", "mcp_port", "mcp_api_key",
)  # fmt: skip


def database_path(settings: Settings) -> str:
    """Return where the database of these settings lies, or ``:memory:``."""
    return settings.data_dir if settings.data_dir == ":memory:" else os.path.join(settings.data_dir, DATABASE)


def load_shield(path: str | None) -> Shield:
    """Load the rules, given or built in.

    Raises:
        SetupError: the rule file is bad; names the rule, the field and the reason.
    """
    try:
        return shield.load(path)
    except RuleError as error:
        raise SetupError(f"The rules cannot be used: {error}") from error


def keep_lasting(old: Settings, new: Settings) -> Settings:
    """Return `new` with what cannot change before a restart as it was in `old`."""
    return replace(new, **{name: getattr(old, name) for name in _UNTIL_RESTART})


@dataclass(frozen=True, slots=True)
class Shared:
    """What the workers of one host have in common, made before they are forked.

    scanner: rules read once. limiter: one rate window a key, over all. board: for the sum of all metrics.
    started_at: when the group began to serve.
    """

    scanner: Shield
    limiter: RateLimiter
    board: Board
    started_at: int


@dataclass(frozen=True, slots=True)
class _Lasting:
    """The parts that live as long as the process, whatever settings and rules are read again."""

    clock: Clock
    ids: Ids
    log: Log
    metrics: Metrics
    store: Store
    audit: Audit
    keys: Keys
    authentication: Authentication
    alerts: Alerts
    first_start: FirstStart
    users: Users
    signin: SignIn
    access: AccessGuard
    access_list: AccessList
    policies: Policies


class Composition:
    """A gateway that can be made anew over the same store, keys and connections."""

    def __init__(self, settings: Settings, scanner: Shield, lasting: _Lasting, client: Client) -> None:
        self._settings = settings
        self._lasting = lasting
        self._client = client
        self.gateway = _assemble(settings, scanner, lasting, client)

    def reload(self, settings: Settings) -> Gateway:
        """Make the gateway of other settings and freshly read rules, and return it.

        Address, TLS, data folder and limits of the server stay as they were until a restart. May run in a thread.

        Raises:
            SetupError: the rules cannot be used; the old gateway goes on.
        """
        settings = keep_lasting(self._settings, settings)
        self.gateway = _assemble(settings, load_shield(settings.rules), self._lasting, self._client)
        return self.gateway


@asynccontextmanager
async def open_gateway(settings: Settings, *, log: Log) -> AsyncGenerator[Gateway]:
    """Yield the gateway of these settings; close everything afterwards. Raises what `open_composition` does."""
    async with open_composition(settings, log=log) as composition:
        yield composition.gateway


@asynccontextmanager
async def open_composition(
    settings: Settings, *, log: Log, shared: Shared | None = None
) -> AsyncGenerator[Composition]:
    """Open the data folder, made if need be, and yield the parts put together; close everything afterwards.

    shared: given when this process is one of several workers.

    Raises:
        SetupError: the rules, the data folder or the database cannot be used.
    """
    clock = SystemClock()
    ids = SystemIds(clock)
    scanner = shared.scanner if shared else load_shield(settings.rules)
    make_data_dir(settings.data_dir)
    store = await open_store(database_path(settings), clock=clock, ids=ids, log=log)
    try:
        lasting = _make_lasting(store, clock, ids, log, shared)
        client = Client(ca_file=settings.upstream_ca_file)
        try:
            yield Composition(settings, scanner, lasting, client)
        finally:
            with anyio.CancelScope(shield=True):
                await client.aclose()
                await lasting.authentication.aclose()
                lasting.access.flush_hits()
    finally:
        with anyio.CancelScope(shield=True):
            await store.aclose()


def _make_lasting(store: Store, clock: Clock, ids: Ids, log: Log, shared: Shared | None) -> _Lasting:
    metrics = Metrics(board=shared.board if shared else None)
    metrics.gauge("gateway_start_time_seconds", (shared.started_at if shared else clock.now_at()) / 1000)
    audit = Audit(store=store, clock=clock, ids=ids, instance_id=store.instance_id)
    keys = Keys(store=store, clock=clock, ids=ids, audit=audit)
    refusals = Refusals(audit=audit, clock=clock)
    passwords = Passwords(ids=ids)
    access = AccessGuard(store=store, clock=clock)
    policies = Policies(store=store, clock=clock, ids=ids, audit=audit)
    return _Lasting(
        clock=clock,
        ids=ids,
        log=log,
        metrics=metrics,
        store=store,
        audit=audit,
        keys=keys,
        authentication=Authentication(
            store=store,
            clock=clock,
            audit=audit,
            limiter=shared.limiter if shared else None,
            refusals=refusals,
            access=access,
            policies=policies,
        ),
        policies=policies,
        access=access,
        access_list=AccessList(store=store, clock=clock, ids=ids, audit=audit),
        alerts=Alerts(store=store, ids=ids),
        first_start=FirstStart(store=store, clock=clock, ids=ids, audit=audit, keys=keys),
        users=Users(store=store, clock=clock, ids=ids, audit=audit, passwords=passwords),
        signin=SignIn(
            store=store,
            clock=clock,
            ids=ids,
            audit=audit,
            passwords=passwords,
            throttle=SignInThrottle(store=store, clock=clock, refusals=refusals),
        ),
    )


def make_data_dir(path: str) -> None:
    """Make the data folder, for its owner alone. One that is there is closed to others if it is ours and in use.

    Raises:
        SetupError: it cannot be made or is no folder.
    """
    if path == ":memory:":
        return
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        if _is_ours(path):
            os.chmod(path, 0o700)
    except OSError as error:
        raise SetupError(
            f"The data folder {path} cannot be made ({error.strerror}): name another with --data-dir, or :memory:."
        ) from error


def _is_ours(path: str) -> bool:
    """Tell whether a folder is open to others although it is ours, holds our database, and nothing of anybody else."""
    found = os.stat(path)
    if not found.st_mode & 0o077 or found.st_mode & stat.S_ISVTX or not os.path.isfile(os.path.join(path, DATABASE)):
        return False
    owners = {entry.stat(follow_symlinks=False).st_uid for entry in os.scandir(path)}
    return owners | {found.st_uid} == {os.geteuid()}


def _assemble(settings: Settings, scanner: Shield, lasting: _Lasting, client: Client) -> Gateway:
    store, clock, ids, audit, alerts = lasting.store, lasting.clock, lasting.ids, lasting.audit, lasting.alerts
    policy = ShieldPolicy(
        mode=ShieldMode(settings.shield_mode),
        unscannable=Unscannable(settings.unscannable),
        outbound=OutboundAction(settings.outbound_action),
        tool_injection=settings.tool_injection,
    )
    scans = Scans(
        shield=scanner,
        store=store,
        clock=clock,
        ids=ids,
        audit=audit,
        alerts=alerts,
        policy=policy,
        policies=lasting.policies,
        max_text_chars=settings.max_text_chars,
    )
    dialect = OpenAiDialect(max_messages=settings.max_messages, max_chars=settings.max_text_chars)
    upstream = _upstream(settings, lasting, dialect, client)
    health = Health(shield=scanner, store=store, upstream=upstream)
    return Gateway(
        settings=settings,
        shield=scanner,
        scans=scans,
        shield_tests=ShieldTests(shield=scanner, store=store, clock=clock, audit=audit),
        chat=Chat(
            store=store,
            clock=clock,
            ids=ids,
            metrics=lasting.metrics,
            audit=audit,
            alerts=alerts,
            judge=scans,
            dialect=dialect,
            policy=policy,
            echo=EchoModel(clock=clock, ids=ids),
            upstream=upstream,
            access=lasting.access,
            policies=lasting.policies,
        ),
        posture=Posture(
            settings=settings, shield=scanner, store=store, audit=audit, health=health, clock=clock, policy=policy
        ),
        health=health,
        **{field.name: getattr(lasting, field.name) for field in fields(_Lasting)},
    )


def _upstream(settings: Settings, lasting: _Lasting, dialect: OpenAiDialect, client: Client) -> WatchedUpstream | None:
    """Return the configured upstream, or None when the built-in model answers everything."""
    if settings.upstream_url is None:
        return None
    limits = UpstreamLimits(
        connect_seconds=settings.upstream_connect_seconds,
        first_byte_seconds=settings.upstream_first_byte_seconds,
        total_seconds=settings.upstream_total_seconds,
        reply_bytes=settings.upstream_reply_bytes,
    )
    return WatchedUpstream(
        HttpUpstream(
            client,
            dialect,
            base_url=settings.upstream_url,
            clock=lasting.clock,
            ids=lasting.ids,
            api_key=settings.upstream_api_key,
            models=settings.upstream_models,
            limits=limits,
            user_agent=f"gateway/{__version__}",
        )
    )
