"""How every part of the gateway is made of others: a row each. Those of `LASTING` outlive a reload.

A row is run, and the module of its part with it, when somebody first asks for the part.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from gateway import __version__, shield
from gateway.app import Gateway, Lasting
from gateway.auth.ratelimit import RateLimiter
from gateway.bundle import archive_sha256
from gateway.clock import Clock, Ids
from gateway.domain import policies as shield_policies
from gateway.http import client
from gateway.llm import connections, openai, prices, upstream, upstream_json
from gateway.log import Log
from gateway.metrics import Board, Metrics
from gateway.services import (
    access_guard,
    access_list,
    agent_discovery,
    agents,
    alerts,
    archive_watch,
    audit,
    audit_chain,
    audit_export,
    authentication,
    budgets,
    chat,
    chat_bill,
    chat_costs,
    circuits,
    event_outputs,
    event_sender,
    event_sinks,
    false_positives,
    feed,
    first_start,
    fleet,
    fleet_peers,
    health,
    host_load,
    keys,
    leases,
    new_verdicts,
    passwords,
    policies,
    posture,
    provider_keys,
    provider_test,
    providers,
    refusals,
    reports,
    retention,
    risk_acceptances,
    routing,
    rules,
    runtime_settings,
    scans,
    security_scans,
    shield_tests,
    sign_in_throttle,
    signin,
    spending,
    traffic,
    trust_audits,
    users,
)
from gateway.settings import Settings
from gateway.store.store import Store

if TYPE_CHECKING:
    from gateway.shield import Shield


@dataclass(frozen=True, slots=True)
class Shared:
    """What the workers of one host have in common, made before they are forked.

    scanner: rules read once. limiter: one rate window a key, over all. board: for the sum of all metrics.
    started_at: when the group began to serve. database: device and inode of the file that all use; None for the
    process that makes it.
    """

    scanner: "Shield"
    limiter: RateLimiter
    board: Board
    started_at: int
    database: tuple[int, int] | None = None


class LastingParts(Lasting):
    """With what only parts ask for. shared: None when this process is the only worker."""

    shared: Shared | None
    ca_file: str | None
    client: "client.Client"
    refusals: "refusals.Refusals"
    passwords: "passwords.Passwords"


class _Gateway(Gateway, LastingParts):
    """With what only parts ask for."""

    policy: "shield_policies.ShieldPolicy"
    dialect: "openai.OpenAiDialect"
    ways: "event_sinks.EventSinks"


def make_lasting(
    store: Store,
    clock: Clock,
    ids: Ids,
    log: Log,
    *,
    shared: Shared | None = None,
    ca_file: str | None = None,
    is_shell: bool = False,
) -> LastingParts:
    """Make the parts that a reload leaves alone.

    shared: given when this process is one of several workers. ca_file: of authorities that upstreams are checked with.
    is_shell: this process is a command, which serves nobody.
    """
    started_at = shared.started_at if shared else clock.now_at()
    known = {"store": store, "clock": clock, "ids": ids, "log": log, "started_at": started_at}
    return LastingParts(LASTING, known | {"shared": shared, "ca_file": ca_file, "is_shell": is_shell})


def assemble(settings: Settings, scanner: "Shield | None", lasting: Lasting) -> Gateway:
    """Make the parts that depend on settings and rules. scanner: None to load the rules when they are first wanted."""
    rows: dict[str, Callable[[Any], object]] = {
        **{name: partial(_of, lasting, name) for name in (*_GIVEN, *LASTING)},
        **PARTS,
    }
    return Gateway(rows, {"settings": settings} | ({"shield": scanner} if scanner else {}))


def _of(lasting: Lasting, name: str, _: object) -> object:
    return getattr(lasting, name)


def _metrics(of: LastingParts) -> Metrics:
    metrics = Metrics(board=of.shared.board if of.shared else None)
    metrics.gauge("gateway_start_time_seconds", of.started_at / 1000)
    return metrics


_GIVEN = ("store", "clock", "ids", "log", "shared", "started_at", "is_shell")

LASTING: Mapping[str, Callable[[LastingParts], object]] = {
    "metrics": _metrics,
    "client": lambda of: client.Client(ca_file=of.ca_file),
    "audit": lambda of: audit.Audit(store=of.store, clock=of.clock, ids=of.ids, instance_id=of.store.instance_id),
    "keys": lambda of: keys.Keys(store=of.store, clock=of.clock, ids=of.ids, audit=of.audit),
    "authentication": lambda of: authentication.Authentication(
        store=of.store,
        clock=of.clock,
        audit=of.audit,
        limiter=of.shared.limiter if of.shared else None,
        refusals=of.refusals,
        access=of.access,
        policies=of.policies,
    ),
    "refusals": lambda of: refusals.Refusals(audit=of.audit, clock=of.clock, alerts=of.alerts),
    "access": lambda of: access_guard.AccessGuard(store=of.store, clock=of.clock),
    "access_list": lambda of: access_list.AccessList(store=of.store, clock=of.clock, ids=of.ids, audit=of.audit),
    "policies": lambda of: policies.Policies(store=of.store, clock=of.clock, ids=of.ids, audit=of.audit),
    "alerts": lambda of: alerts.Alerts(
        store=of.store, clock=of.clock, ids=of.ids, audit=of.audit, accepted_until=alerts.accepted_until(of.store)
    ),
    "false_positives": lambda of: false_positives.FalsePositives(store=of.store, clock=of.clock, audit=of.audit),
    "traffic": lambda of: traffic.Traffic(store=of.store, clock=of.clock),
    "agents": lambda of: agents.Agents(store=of.store, clock=of.clock, ids=of.ids, audit=of.audit, traffic=of.traffic),
    "agent_discovery": lambda of: agent_discovery.AgentDiscovery(
        store=of.store, clock=of.clock, ids=of.ids, alerts=of.alerts
    ),
    "leases": lambda of: leases.Leases(store=of.store, clock=of.clock, ids=of.ids),
    "host_load": lambda of: host_load.HostLoad(clock=of.clock, is_worker=of.shared is not None),
    "feed": lambda of: feed.Feed(store=of.store, clock=of.clock),
    "first_start": lambda of: first_start.FirstStart(
        store=of.store, clock=of.clock, ids=of.ids, audit=of.audit, keys=lambda: of.keys
    ),
    "passwords": lambda of: passwords.Passwords(ids=of.ids),
    "users": lambda of: users.Users(store=of.store, clock=of.clock, ids=of.ids, audit=of.audit, passwords=of.passwords),
    "sign_in_throttle": lambda of: sign_in_throttle.SignInThrottle(
        store=of.store, clock=of.clock, refusals=of.refusals
    ),
    "signin": lambda of: signin.SignIn(
        store=of.store,
        clock=of.clock,
        ids=of.ids,
        audit=of.audit,
        passwords=of.passwords,
        throttle=of.sign_in_throttle,
    ),
    "spending": lambda of: spending.Spending(store=of.store, clock=of.clock, alerts=of.alerts),
    "budgets": lambda of: budgets.Budgets(
        store=of.store, clock=of.clock, ids=of.ids, audit=of.audit, spending=of.spending
    ),
    "risk_acceptances": lambda of: risk_acceptances.RiskAcceptances(
        store=of.store, clock=of.clock, ids=of.ids, audit=of.audit
    ),
    "circuits": lambda of: circuits.Circuits(store=of.store, clock=of.clock, alerts=of.alerts, log=of.log),
}


def _policy(of: _Gateway) -> object:
    """Return what holds for keys that have no policy of their own."""
    return shield_policies.ShieldPolicy(
        mode=shield_policies.ShieldMode(of.settings.shield_mode),
        unscannable=shield_policies.Unscannable(of.settings.unscannable),
        outbound=shield_policies.OutboundAction(of.settings.outbound_action),
        tool_injection=of.settings.tool_injection,
    )


def _scans(of: _Gateway) -> object:
    return scans.Scans(
        shield=of.shield,
        store=of.store,
        clock=of.clock,
        ids=of.ids,
        audit=of.audit,
        alerts=of.alerts,
        policy=of.policy,
        policies=of.policies,
        acceptances=of.risk_acceptances,
        rules=of.rules,
        max_text_chars=of.settings.max_text_chars,
        max_wait_seconds=of.settings.max_wait_seconds,
    )


def _chat(of: _Gateway) -> object:
    costs = chat_costs.ChatCosts(prices.load_prices(of.settings.prices), reply_tokens=of.settings.budget_reply_tokens)
    return chat.Chat(
        store=of.store,
        clock=of.clock,
        ids=of.ids,
        metrics=of.metrics,
        audit=of.audit,
        alerts=of.alerts,
        scanner=of.scans.scanner,
        dialect=of.dialect,
        policy=of.policy,
        routing=of.routing,
        bill=chat_bill.ChatBill(store=of.store, ids=of.ids, alerts=of.alerts, costs=costs, spending=of.spending),
        acceptances=of.risk_acceptances,
        access=of.access,
        policies=of.policies,
        agents=of.agent_discovery,
        syncs_always=of.settings.audit_sync == "always",
    )


def _routing(of: _Gateway) -> object:
    """Return the ways to all providers, which keep their circuits over a reload."""
    agent = f"gateway/{__version__}"
    open_http = partial(upstream.HttpUpstream, of.client, of.dialect, clock=of.clock, ids=of.ids, user_agent=agent)
    return routing.Routing(
        store=of.store,
        clock=of.clock,
        circuits=of.circuits,
        keys=of.secrets,
        connect=connections.Connections(of.settings, open_http, clock=of.clock, ids=of.ids).connect,
        upstream=connections.settings_provider(of.settings),
        metrics=of.metrics,
        attempts_seconds=of.settings.upstream_attempts_seconds,
    )


def _ways(of: _Gateway) -> object:
    """Return how events leave the gateway."""
    return event_sinks.EventSinks(
        post=of.client.request,
        clock=of.clock,
        secrets=of.secrets,
        folder=None if of.settings.data_dir == ":memory:" else of.settings.data_dir,
        sender=of.store.instance_id,
    )


def _security_scans(of: _Gateway) -> object:
    return security_scans.SecurityScans(
        shield=of.shield,
        store=of.store,
        clock=of.clock,
        ids=of.ids,
        audit=of.audit,
        scan_paths=of.settings.scan_paths,
        max_text_chars=of.settings.max_text_chars,
    )


def _fleet(of: _Gateway) -> object:
    """Return what tells of this gateway's heartbeat."""
    return fleet.Fleet(
        store=of.store,
        clock=of.clock,
        alerts=of.alerts,
        health=of.health,
        traffic=of.traffic,
        load=of.host_load,
        scores=of.posture.point,
        started_at=of.started_at,
        version=__version__,
        archive_sha256=archive_sha256,
    )


def _fleet_peers(of: _Gateway) -> object:
    return fleet_peers.FleetPeers(
        store=of.store,
        clock=of.clock,
        ids=of.ids,
        audit=of.audit,
        fleet=of.fleet,
        reader=upstream_json.JsonReader(of.client, user_agent=f"gateway/{__version__}"),
        resolve=upstream.addresses_of,
        keys=of.secrets,
    )


PARTS: Mapping[str, Callable[[_Gateway], object]] = {
    "shield": lambda of: shield.load(of.settings.rules),
    "policy": _policy,
    "secrets": lambda of: provider_keys.ProviderKeys(of.store.keyfile, of.settings),
    "rules": lambda of: rules.Rules(shield=of.shield, store=of.store, clock=of.clock, audit=of.audit),
    "scans": _scans,
    "new_verdicts": lambda of: new_verdicts.NewVerdicts(of.store, of.clock, of.policies, policy=of.policy),
    "dialect": lambda of: openai.OpenAiDialect(
        max_messages=of.settings.max_messages, max_chars=of.settings.max_chat_chars
    ),
    "chat": _chat,
    "routing": _routing,
    "providers": lambda of: providers.Providers(
        store=of.store,
        clock=of.clock,
        ids=of.ids,
        audit=of.audit,
        circuits=of.circuits,
        keys=of.secrets,
        resolve=upstream.addresses_of,
        log=of.log,
    ),
    "provider_test": lambda of: provider_test.ProviderTest(
        routing=of.routing, circuits=of.circuits, providers=of.providers, clock=of.clock
    ),
    "health": lambda of: health.Health(shield=of.shield, store=of.store, upstream=lambda: of.routing.health()),
    "posture": lambda of: posture.Posture(
        settings=of.settings,
        shield=of.shield,
        store=of.store,
        audit=of.audit,
        health=of.health,
        clock=of.clock,
        policy=of.policy,
        is_shell=of.is_shell,
    ),
    "shield_tests": lambda of: shield_tests.ShieldTests(
        shield=of.shield, store=of.store, clock=of.clock, audit=of.audit, rules=of.rules
    ),
    "audit_chain": lambda of: audit_chain.AuditChain(store=of.store, clock=of.clock, audit=of.audit, alerts=of.alerts),
    "audit_export": lambda of: audit_export.AuditExport(store=of.store, audit=of.audit),
    "ways": _ways,
    "event_outputs": lambda of: event_outputs.EventOutputs(
        store=of.store, clock=of.clock, ids=of.ids, audit=of.audit, ways=of.ways
    ),
    "event_sender": lambda of: event_sender.EventSender(
        store=of.store, clock=of.clock, leases=of.leases, log=of.log, ways=of.ways, metrics=of.metrics
    ),
    "reports": lambda of: reports.Reports(
        store=of.store, clock=of.clock, ids=of.ids, audit=of.audit, scores=of.posture.point
    ),
    "security_scans": _security_scans,
    "runtime_settings": lambda of: runtime_settings.RuntimeSettings(
        store=of.store, audit=of.audit, settings=of.settings
    ),
    "trust_audits": lambda of: trust_audits.TrustAudits(
        posture=of.posture, store=of.store, clock=of.clock, ids=of.ids, audit=of.audit
    ),
    "fleet": _fleet,
    "fleet_peers": _fleet_peers,
    "retention": lambda of: retention.Retention(
        store=of.store,
        clock=of.clock,
        audit=of.audit,
        days=partial(retention.kept_days, of.runtime_settings.value),
    ),
    "archive_watch": lambda of: archive_watch.ArchiveWatch(store=of.store, clock=of.clock, alerts=of.alerts),
}
