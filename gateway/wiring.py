"""Make every service out of others, in order: those that last as long as the process, then those of settings and rules.

A reload makes the second half anew and keeps the first, with its store and its caches.
"""

from dataclasses import dataclass
from functools import partial

from gateway import __version__
from gateway.app import Gateway, Lasting
from gateway.auth.ratelimit import RateLimiter
from gateway.bundle import archive_sha256
from gateway.clock import Clock, Ids
from gateway.domain.policies import OutboundAction, ShieldMode, ShieldPolicy, Unscannable
from gateway.http.client import Client
from gateway.llm.connections import Connections, settings_provider
from gateway.llm.openai import OpenAiDialect
from gateway.llm.prices import load_prices
from gateway.llm.upstream import HttpUpstream, JsonReader, addresses_of
from gateway.log import Log
from gateway.metrics import Board, Metrics
from gateway.services.access_guard import AccessGuard
from gateway.services.access_list import AccessList
from gateway.services.agent_discovery import AgentDiscovery
from gateway.services.agents import Agents
from gateway.services.alerts import Alerts, accepted_until
from gateway.services.archive_watch import ArchiveWatch
from gateway.services.audit import Audit
from gateway.services.audit_chain import AuditChain
from gateway.services.audit_export import AuditExport
from gateway.services.authentication import Authentication
from gateway.services.budgets import Budgets
from gateway.services.chat import Chat
from gateway.services.chat_costs import ChatCosts
from gateway.services.circuits import Circuits
from gateway.services.event_outputs import EventOutputs
from gateway.services.event_sender import EventSender
from gateway.services.event_sinks import EventSinks
from gateway.services.false_positives import FalsePositives
from gateway.services.feed import Feed
from gateway.services.first_start import FirstStart
from gateway.services.fleet import Fleet
from gateway.services.fleet_peers import FleetPeers
from gateway.services.health import Health
from gateway.services.host_load import HostLoad
from gateway.services.keys import Keys
from gateway.services.leases import Leases
from gateway.services.new_verdicts import NewVerdicts
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

_USER_AGENT = f"gateway/{__version__}"


@dataclass(frozen=True, slots=True)
class Shared:
    """What the workers of one host share, made before they are forked.

    shield: the rules, read once. limiter: one rate window a key, over all workers. board: for the sum of all metrics.
    started_at: when the group began to serve. database: device and inode of the file that all use; None for the process
    that makes it.
    """

    shield: Shield
    limiter: RateLimiter
    board: Board
    started_at: int
    database: tuple[int, int] | None = None


def make_lasting(
    store: Store, clock: Clock, ids: Ids, log: Log, *, shared: Shared | None = None, is_shell: bool = False
) -> Lasting:
    """Make the services that a reload keeps. shared: None when this process is the only one that serves."""
    started_at = shared.started_at if shared else clock.now_at()
    metrics = Metrics(board=shared.board if shared else None)
    metrics.gauge("gateway_start_time_seconds", started_at / 1000)
    audit = Audit(store=store, clock=clock, ids=ids, instance_id=store.instance_id)
    alerts = Alerts(store=store, clock=clock, ids=ids, audit=audit, accepted_until=accepted_until(store))
    access = AccessGuard(store=store, clock=clock)
    policies = Policies(store=store, clock=clock, ids=ids, audit=audit)
    refusals = Refusals(audit=audit, clock=clock, alerts=alerts)
    keys = Keys(store=store, clock=clock, ids=ids, audit=audit)
    passwords = Passwords(ids=ids)
    throttle = SignInThrottle(store=store, clock=clock, refusals=refusals)
    spending = Spending(store=store, clock=clock, alerts=alerts)
    traffic = Traffic(store=store, clock=clock)
    return Lasting(
        clock=clock,
        ids=ids,
        log=log,
        metrics=metrics,
        store=store,
        started_at=started_at,
        is_shell=is_shell,
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
        alerts=alerts,
        false_positives=FalsePositives(store=store, clock=clock, audit=audit),
        traffic=traffic,
        agents=Agents(store=store, clock=clock, ids=ids, audit=audit, traffic=traffic),
        agent_discovery=AgentDiscovery(store=store, clock=clock, ids=ids, alerts=alerts),
        leases=Leases(store=store, clock=clock, ids=ids),
        host_load=HostLoad(clock=clock, is_worker=shared is not None),
        feed=Feed(store=store, clock=clock),
        first_start=FirstStart(store=store, clock=clock, ids=ids, audit=audit, keys=keys),
        users=Users(store=store, clock=clock, ids=ids, audit=audit, passwords=passwords),
        sign_in_throttle=throttle,
        signin=SignIn(store=store, clock=clock, ids=ids, audit=audit, passwords=passwords, throttle=throttle),
        access=access,
        access_list=AccessList(store=store, clock=clock, ids=ids, audit=audit),
        policies=policies,
        budgets=Budgets(store=store, clock=clock, ids=ids, audit=audit, spending=spending),
        spending=spending,
        risk_acceptances=RiskAcceptances(store=store, clock=clock, ids=ids, audit=audit),
        circuits=Circuits(store=store, clock=clock, alerts=alerts, log=log),
    )


def make_gateway(settings: Settings, shield: Shield, of: Lasting, client: Client) -> Gateway:
    """Make the services that depend on settings and rules. of: the services that a reload keeps."""
    store, clock, ids, audit, alerts = of.store, of.clock, of.ids, of.audit, of.alerts
    policy = default_policy(settings)
    secrets = ProviderKeys(store.keyfile, settings)
    rules = Rules(shield=shield, store=store, clock=clock, audit=audit)
    scans = make_scans(settings, shield, of, rules, policy)
    dialect = OpenAiDialect(max_messages=settings.max_messages, max_chars=settings.max_chat_chars)
    routing = make_routing(settings, of, client, dialect, secrets)
    providers = make_providers(of, secrets)
    health = Health(shield=shield, store=store, upstream=routing.health)
    posture = make_posture(settings, shield, of, health, policy)
    fleet = make_fleet(of, health, posture)
    sinks = make_sinks(settings, of, client, secrets)
    runtime_settings = RuntimeSettings(store=store, audit=audit, settings=settings)
    return Gateway(
        **vars(of),
        settings=settings,
        shield=shield,
        secrets=secrets,
        rules=rules,
        scans=scans,
        chat=make_chat(settings, of, scans, dialect, policy, routing),
        routing=routing,
        providers=providers,
        provider_test=ProviderTest(routing=routing, circuits=of.circuits, providers=providers, clock=clock),
        health=health,
        posture=posture,
        fleet=fleet,
        fleet_peers=make_fleet_peers(of, client, fleet, secrets),
        event_outputs=EventOutputs(store=store, clock=clock, ids=ids, audit=audit, sinks=sinks),
        event_sender=EventSender(
            store=store, clock=clock, leases=of.leases, log=of.log, sinks=sinks, metrics=of.metrics
        ),
        new_verdicts=NewVerdicts(store, clock, of.policies, policy=policy),
        shield_tests=ShieldTests(shield=shield, store=store, clock=clock, audit=audit, rules=rules),
        audit_chain=AuditChain(store=store, clock=clock, audit=audit, alerts=alerts),
        audit_export=AuditExport(store=store, audit=audit),
        reports=Reports(store=store, clock=clock, ids=ids, audit=audit, scores=posture.point),
        security_scans=make_security_scans(settings, shield, of),
        runtime_settings=runtime_settings,
        trust_audits=TrustAudits(posture=posture, store=store, clock=clock, ids=ids, audit=audit),
        retention=Retention(store=store, clock=clock, audit=audit, days=partial(kept_days, runtime_settings.value)),
        archive_watch=ArchiveWatch(store=store, clock=clock, alerts=alerts),
    )


def default_policy(settings: Settings) -> ShieldPolicy:
    """Return the policy of keys that have none of their own."""
    return ShieldPolicy(
        mode=ShieldMode(settings.shield_mode),
        unscannable=Unscannable(settings.unscannable),
        outbound=OutboundAction(settings.outbound_action),
        tool_injection=settings.tool_injection,
    )


def make_scans(settings: Settings, shield: Shield, of: Lasting, rules: Rules, policy: ShieldPolicy) -> Scans:
    """Return the service that scans texts."""
    return Scans(
        shield=shield,
        store=of.store,
        clock=of.clock,
        ids=of.ids,
        audit=of.audit,
        alerts=of.alerts,
        policy=policy,
        policies=of.policies,
        acceptances=of.risk_acceptances,
        rules=rules,
        max_text_chars=settings.max_text_chars,
        max_wait_seconds=settings.max_wait_seconds,
    )


def make_routing(
    settings: Settings, of: Lasting, client: Client, dialect: OpenAiDialect, secrets: ProviderKeys
) -> Routing:
    """Return the service that chooses a provider for each chat. It keeps the circuits over a reload."""
    open_http = partial(HttpUpstream, client, dialect, clock=of.clock, ids=of.ids, user_agent=_USER_AGENT)
    return Routing(
        store=of.store,
        clock=of.clock,
        circuits=of.circuits,
        keys=secrets,
        connect=Connections(settings, open_http, clock=of.clock, ids=of.ids).connect,
        upstream=settings_provider(settings),
        metrics=of.metrics,
        attempts_seconds=settings.upstream_attempts_seconds,
    )


def make_chat(
    settings: Settings, of: Lasting, scans: Scans, dialect: OpenAiDialect, policy: ShieldPolicy, routing: Routing
) -> Chat:
    """Return the service that completes chats."""
    costs = ChatCosts(load_prices(settings.prices), reply_tokens=settings.budget_reply_tokens)
    return Chat(
        store=of.store,
        clock=of.clock,
        ids=of.ids,
        metrics=of.metrics,
        audit=of.audit,
        alerts=of.alerts,
        scanner=scans.scanner,
        dialect=dialect,
        policy=policy,
        routing=routing,
        costs=costs,
        spending=of.spending,
        acceptances=of.risk_acceptances,
        access=of.access,
        policies=of.policies,
        agents=of.agent_discovery,
        syncs_always=settings.audit_sync == "always",
    )


def make_fleet(of: Lasting, health: Health, posture: Posture) -> Fleet:
    """Return the service that tells other gateways how this one is."""
    return Fleet(
        store=of.store,
        clock=of.clock,
        alerts=of.alerts,
        health=health,
        traffic=of.traffic,
        load=of.host_load,
        scores=posture.point,
        started_at=of.started_at,
        version=__version__,
        archive_sha256=archive_sha256,
    )


def make_providers(of: Lasting, secrets: ProviderKeys) -> Providers:
    """Return the service that keeps the records of providers."""
    return Providers(
        store=of.store,
        clock=of.clock,
        ids=of.ids,
        audit=of.audit,
        circuits=of.circuits,
        keys=secrets,
        resolve=addresses_of,
        log=of.log,
    )


def make_posture(settings: Settings, shield: Shield, of: Lasting, health: Health, policy: ShieldPolicy) -> Posture:
    """Return the service that checks how this gateway is set up."""
    return Posture(
        settings=settings,
        shield=shield,
        store=of.store,
        audit=of.audit,
        health=health,
        clock=of.clock,
        policy=policy,
        is_shell=of.is_shell,
    )


def make_sinks(settings: Settings, of: Lasting, client: Client, secrets: ProviderKeys) -> EventSinks:
    """Return what carries events out of the gateway."""
    return EventSinks(
        post=client.request,
        clock=of.clock,
        secrets=secrets,
        folder=None if settings.data_dir == ":memory:" else settings.data_dir,
        sender=of.store.instance_id,
    )


def make_fleet_peers(of: Lasting, client: Client, fleet: Fleet, secrets: ProviderKeys) -> FleetPeers:
    """Return the service that asks other gateways how they are."""
    return FleetPeers(
        store=of.store,
        clock=of.clock,
        ids=of.ids,
        audit=of.audit,
        fleet=fleet,
        reader=JsonReader(client, user_agent=_USER_AGENT),
        resolve=addresses_of,
        keys=secrets,
    )


def make_security_scans(settings: Settings, shield: Shield, of: Lasting) -> SecurityScans:
    """Return the service that scans the files of this host."""
    return SecurityScans(
        shield=shield,
        store=of.store,
        clock=of.clock,
        ids=of.ids,
        audit=of.audit,
        scan_paths=settings.scan_paths,
        max_text_chars=settings.max_text_chars,
    )
