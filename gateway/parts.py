"""Every part of the gateway, made and handed to the next: those that outlive a reload, and those made anew by it."""

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from gateway import __version__
from gateway.app import Gateway
from gateway.auth.ratelimit import RateLimiter
from gateway.bundle import archive_sha256
from gateway.clock import Clock, Ids
from gateway.domain.policies import OutboundAction, ShieldMode, ShieldPolicy, Unscannable
from gateway.http.client import Client
from gateway.llm.connections import Connections, settings_provider
from gateway.llm.openai import OpenAiDialect
from gateway.llm.prices import load_prices
from gateway.llm.upstream import HttpUpstream, addresses_of
from gateway.llm.upstream_json import JsonReader
from gateway.log import Log
from gateway.metrics import Board, Metrics
from gateway.services.access_guard import AccessGuard
from gateway.services.access_list import AccessList
from gateway.services.agent_sightings import AgentSightings
from gateway.services.agents import Agents
from gateway.services.alerts import Alerts, accepted_until
from gateway.services.archive_watch import ArchiveWatch
from gateway.services.audit import Audit
from gateway.services.audit_chain import AuditChain
from gateway.services.audit_export import AuditExport
from gateway.services.authentication import Authentication
from gateway.services.budgets import Budgets
from gateway.services.chat import Chat
from gateway.services.chat_bill import ChatBill
from gateway.services.chat_costs import ChatCosts
from gateway.services.circuits import Circuits
from gateway.services.event_outputs import EventOutputs
from gateway.services.event_sender import EventSender
from gateway.services.event_ways import EventWays
from gateway.services.feed import Feed
from gateway.services.first_start import FirstStart
from gateway.services.fleet import Fleet
from gateway.services.fleet_peers import FleetPeers
from gateway.services.health import Health
from gateway.services.host_load import HostLoad
from gateway.services.keys import Keys
from gateway.services.leases import Leases
from gateway.services.passwords import Passwords
from gateway.services.policies import Policies
from gateway.services.posture import Posture
from gateway.services.provider_keys import ProviderKeys
from gateway.services.provider_test import ProviderTest
from gateway.services.providers import Providers
from gateway.services.refusals import Refusals
from gateway.services.reports import Reports
from gateway.services.retention import Retention, kept_days
from gateway.services.risk_acceptances import RiskAcceptances
from gateway.services.routing import Routing
from gateway.services.rules import Rules
from gateway.services.runtime_settings import RuntimeSettings
from gateway.services.scans import Scans
from gateway.services.security_scans import SecurityScans
from gateway.services.shield_tests import ShieldTests
from gateway.services.sign_in_throttle import SignInThrottle
from gateway.services.signin import SignIn
from gateway.services.spending import Spending
from gateway.services.traffic import Traffic
from gateway.services.trust_audits import TrustAudits
from gateway.services.users import Users
from gateway.settings import Settings
from gateway.shield import Shield
from gateway.store.store import Store


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
class Lasting:
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
    traffic: Traffic
    agents: Agents
    agent_sightings: AgentSightings
    leases: Leases
    started_at: int
    host_load: HostLoad
    feed: Feed
    first_start: FirstStart
    users: Users
    signin: SignIn
    access: AccessGuard
    access_list: AccessList
    policies: Policies
    budgets: Budgets
    spending: Spending
    risk_acceptances: RiskAcceptances
    circuits: Circuits
    providers: Providers


def make_lasting(store: Store, clock: Clock, ids: Ids, log: Log, shared: Shared | None) -> Lasting:
    """Make the parts that a reload leaves alone. shared: given when this process is one of several workers."""
    metrics = Metrics(board=shared.board if shared else None)
    metrics.gauge("gateway_start_time_seconds", (shared.started_at if shared else clock.now_at()) / 1000)
    audit = Audit(store=store, clock=clock, ids=ids, instance_id=store.instance_id)
    keys = Keys(store=store, clock=clock, ids=ids, audit=audit)
    alerts = Alerts(store=store, clock=clock, ids=ids, audit=audit, accepted_until=accepted_until(store))
    refusals = Refusals(audit=audit, clock=clock, alerts=alerts)
    traffic = Traffic(store=store, clock=clock)
    passwords = Passwords(ids=ids)
    access = AccessGuard(store=store, clock=clock)
    policies = Policies(store=store, clock=clock, ids=ids, audit=audit)
    spending = Spending(store=store, clock=clock, alerts=alerts)
    circuits = Circuits(store=store, clock=clock, alerts=alerts, log=log)
    return Lasting(
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
        budgets=Budgets(store=store, clock=clock, ids=ids, audit=audit, spending=spending),
        spending=spending,
        risk_acceptances=RiskAcceptances(store=store, clock=clock, ids=ids, audit=audit),
        circuits=circuits,
        providers=Providers(
            store=store, clock=clock, ids=ids, audit=audit, circuits=circuits, resolve=addresses_of, log=log
        ),
        access=access,
        access_list=AccessList(store=store, clock=clock, ids=ids, audit=audit),
        alerts=alerts,
        traffic=traffic,
        agents=Agents(store=store, clock=clock, ids=ids, audit=audit, traffic=traffic),
        started_at=shared.started_at if shared else clock.now_at(),
        host_load=HostLoad(clock=clock, is_worker=shared is not None),
        leases=Leases(store=store, clock=clock, ids=ids),
        agent_sightings=AgentSightings(store=store, clock=clock, ids=ids, alerts=alerts),
        feed=Feed(store=store, clock=clock),
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


def assemble(settings: Settings, scanner: Shield, lasting: Lasting, client: Client) -> Gateway:
    """Make the parts that depend on settings and rules, and put them together with the lasting ones."""
    store, clock, ids, audit, alerts = lasting.store, lasting.clock, lasting.ids, lasting.audit, lasting.alerts
    policy = _policy(settings)
    rules = Rules(shield=scanner, store=store, clock=clock, audit=audit)
    scans = Scans(
        shield=scanner,
        store=store,
        clock=clock,
        ids=ids,
        audit=audit,
        alerts=alerts,
        policy=policy,
        policies=lasting.policies,
        acceptances=lasting.risk_acceptances,
        rules=rules,
        max_text_chars=settings.max_text_chars,
    )
    dialect = OpenAiDialect(max_messages=settings.max_messages, max_chars=settings.max_text_chars)
    routing = _routing(settings, lasting, dialect, client)
    costs = ChatCosts(load_prices(settings.prices), reply_tokens=settings.budget_reply_tokens)
    health = Health(shield=scanner, store=store, upstream=routing.health)
    posture = Posture(
        settings=settings, shield=scanner, store=store, audit=audit, health=health, clock=clock, policy=policy
    )
    return Gateway(
        settings=settings,
        shield=scanner,
        scans=scans,
        rules=rules,
        shield_tests=ShieldTests(shield=scanner, store=store, clock=clock, audit=audit, rules=rules),
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
            routing=routing,
            bill=ChatBill(store=store, ids=ids, alerts=alerts, costs=costs, spending=lasting.spending),
            acceptances=lasting.risk_acceptances,
            access=lasting.access,
            policies=lasting.policies,
            agents=lasting.agent_sightings,
        ),
        posture=posture,
        **_views(settings, lasting, posture=posture, client=client, scanner=scanner),
        **_fleet(settings, lasting, posture=posture, health=health, client=client),
        health=health,
        routing=routing,
        provider_test=ProviderTest(
            routing=routing, circuits=lasting.circuits, providers=lasting.providers, clock=clock
        ),
        **{field.name: getattr(lasting, field.name) for field in fields(Lasting)},
    )


def _policy(settings: Settings) -> ShieldPolicy:
    """Return what holds for keys that have no policy of their own."""
    return ShieldPolicy(
        mode=ShieldMode(settings.shield_mode),
        unscannable=Unscannable(settings.unscannable),
        outbound=OutboundAction(settings.outbound_action),
        tool_injection=settings.tool_injection,
    )


def _views(
    settings: Settings, lasting: Lasting, *, posture: Posture, client: Client, scanner: Shield
) -> dict[str, Any]:
    """Make what a security team looks at, and what leaves the gateway for it."""
    store, clock, ids, audit = lasting.store, lasting.clock, lasting.ids, lasting.audit
    ways = EventWays(
        post=client.request,
        clock=clock,
        secrets=ProviderKeys(store.keyfile),
        folder=None if settings.data_dir == ":memory:" else settings.data_dir,
        sender=store.instance_id,
    )
    return {
        "audit_chain": AuditChain(store=store, clock=clock, audit=audit, alerts=lasting.alerts),
        "audit_export": AuditExport(store=store, audit=audit),
        "event_outputs": EventOutputs(store=store, clock=clock, ids=ids, audit=audit, ways=ways),
        "event_sender": EventSender(
            store=store, clock=clock, leases=lasting.leases, log=lasting.log, ways=ways, metrics=lasting.metrics
        ),
        "reports": Reports(store=store, clock=clock, ids=ids, audit=audit),
        "security_scans": SecurityScans(
            shield=scanner,
            store=store,
            clock=clock,
            ids=ids,
            audit=audit,
            scan_paths=settings.scan_paths,
            max_text_chars=settings.max_text_chars,
        ),
        "runtime_settings": RuntimeSettings(store=store, audit=audit, settings=settings),
        "trust_audits": TrustAudits(posture=posture, store=store, clock=clock, ids=ids, audit=audit),
    }


def _fleet(settings: Settings, lasting: Lasting, *, posture: Posture, health: Health, client: Client) -> dict[str, Any]:
    """Make what looks after this gateway's heartbeat, its peers and what it keeps."""
    store, clock = lasting.store, lasting.clock
    fleet = Fleet(
        store=store,
        clock=clock,
        alerts=lasting.alerts,
        health=health,
        traffic=lasting.traffic,
        load=lasting.host_load,
        threat=posture.threat,
        started_at=lasting.started_at,
        version=__version__,
        archive_sha256=archive_sha256,
    )
    peers = FleetPeers(
        store=store,
        clock=clock,
        ids=lasting.ids,
        audit=lasting.audit,
        fleet=fleet,
        reader=JsonReader(client, user_agent=f"gateway/{__version__}"),
        resolve=addresses_of,
    )
    runtime = RuntimeSettings(store=store, audit=lasting.audit, settings=settings)
    retention = Retention(store=store, clock=clock, audit=lasting.audit, days=partial(kept_days, runtime.value))
    watch = ArchiveWatch(store=store, clock=clock, alerts=lasting.alerts)
    return {"fleet": fleet, "fleet_peers": peers, "retention": retention, "archive_watch": watch}


def _routing(settings: Settings, lasting: Lasting, dialect: OpenAiDialect, client: Client) -> Routing:
    """Return the ways to all providers, which keep their circuits over a reload."""
    clock, ids, store = lasting.clock, lasting.ids, lasting.store
    open_http = partial(HttpUpstream, client, dialect, clock=clock, ids=ids, user_agent=f"gateway/{__version__}")
    return Routing(
        store=store,
        clock=clock,
        circuits=lasting.circuits,
        keys=ProviderKeys(store.keyfile),
        connect=Connections(settings, open_http, clock=clock, ids=ids).connect,
        upstream=settings_provider(settings),
        metrics=lasting.metrics,
        attempts_seconds=settings.upstream_attempts_seconds,
    )
