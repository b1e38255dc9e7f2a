"""Every service, made out of others in order: first those that last as long as the process, then those of settings.

A reload makes a new `Gateway` over the same `Lasting`, with its store and its caches.
"""

from copy import copy
from dataclasses import dataclass
from functools import partial

from gateway import __version__
from gateway.clock import Clock, Ids
from gateway.domain.alerts import AlertSource
from gateway.domain.policies import OutboundAction, OutboundStream, ShieldMode, ShieldPolicy, Unscannable
from gateway.http.client import Client
from gateway.llm.connections import connect, settings_provider
from gateway.llm.echo import EchoModel
from gateway.llm.openai import OpenAiDialect
from gateway.llm.prices import load_prices
from gateway.llm.upstream import HttpUpstream, JsonReader, addresses_of
from gateway.services.access_guard import AccessGuard
from gateway.services.access_list import AccessList
from gateway.services.agent_discovery import AgentDiscovery
from gateway.services.agents import Agents
from gateway.services.alerts import Alerts
from gateway.services.audit_chain import AuditChain
from gateway.services.authentication import Authentication
from gateway.services.budgets import Budgets
from gateway.services.chat import Chat
from gateway.services.chat_costs import ChatCosts
from gateway.services.circuits import Circuits
from gateway.services.core import Core
from gateway.services.detector_calls import DetectorCalls
from gateway.services.detectors import Detectors
from gateway.services.event_outputs import EventOutputs
from gateway.services.event_sender import EventSender
from gateway.services.evidence import Evidence
from gateway.services.feed import Feed
from gateway.services.first_start import FirstStart
from gateway.services.fleet import Fleet
from gateway.services.fleet_peers import FleetPeers
from gateway.services.guardrails import Guardrails
from gateway.services.harmless import Harmless
from gateway.services.health import Health
from gateway.services.host_load import HostLoad
from gateway.services.incidents import Incidents
from gateway.services.keys import Keys
from gateway.services.leases import Leases
from gateway.services.local_rules import LocalRules
from gateway.services.new_verdicts import NewVerdicts
from gateway.services.passwords import Passwords
from gateway.services.policies import Policies
from gateway.services.provider_keys import ProviderKeys
from gateway.services.providers import Providers
from gateway.services.refusals import Refusals
from gateway.services.reports import Reports, ReportSchedules
from gateway.services.retention import Retention
from gateway.services.risk_acceptances import RiskAcceptances
from gateway.services.routing import Routing
from gateway.services.rule_trials import RuleTrials
from gateway.services.rules import Rules
from gateway.services.running import Running
from gateway.services.runtime_settings import RuntimeSettings
from gateway.services.scanner import TextScanner
from gateway.services.scans import Scans
from gateway.services.security_scans import SecurityScans
from gateway.services.shield_tests import ShieldTests
from gateway.services.sign_in_throttle import SignInThrottle
from gateway.services.signin import SignIn
from gateway.services.spending import Spending
from gateway.services.traffic import Traffic
from gateway.services.trials import Trials
from gateway.services.trust_audits import TrustAudits
from gateway.services.users import Users
from gateway.settings import Settings
from gateway.shield import Shield
from gateway.store.metric_board import MetricBoard
from gateway.store.rate_grants import RateGrants
from gateway.store.rate_windows import RateWindows
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
    limiter: RateWindows
    board: MetricBoard
    started_at: int
    database: tuple[int, int] | None = None


class Lasting(Core):
    """The services that last as long as the process, across reloads. They need no rules.

    is_shell: this process is a command, which serves nobody. started_at: when the gateway or its group began to serve.
    """

    def __init__(
        self, store: Store, clock: Clock, ids: Ids, *, shared: Shared | None = None, is_shell: bool = False
    ) -> None:
        """shared: None when this process is the only one that serves."""
        super().__init__(store, clock, ids, shared.board if shared else None)
        self.is_shell = is_shell
        self.started_at = shared.started_at if shared else clock.now_at()
        self.metrics.gauge("gateway_start_time_seconds", self.started_at / 1000)
        self.alerts = alerts = Alerts(self)
        self.leases = Leases(store=store, ids=ids)
        self.host_load = HostLoad(clock=clock, is_worker=shared is not None)
        self.feed = Feed(self)
        self.traffic = Traffic(self)
        self.access = AccessGuard(self)
        self.access_list = AccessList(self)
        self.policies = Policies(self)
        self.keys = Keys(self)
        self.trials = Trials(self, policies=self.policies, keys=self.keys)
        self.first_start = FirstStart(self, keys=self.keys)
        refusals = Refusals(self, alerts=alerts)
        self.limiter = shared.limiter if shared else RateWindows()
        self.authentication = Authentication(
            self,
            limiter=RateGrants(store.db) if store.db.is_shared else self.limiter,
            refusals=refusals,
            access=self.access,
            policies=self.policies,
        )
        passwords = Passwords(ids=ids)
        self.users = Users(self, passwords=passwords)
        self.sign_in_throttle = SignInThrottle(self, refusals=refusals)
        self.signin = SignIn(self, passwords=passwords, throttle=self.sign_in_throttle)
        self.agents = Agents(self, traffic=self.traffic)
        self.incidents = Incidents(self, alerts=alerts, keys=self.keys, agents=self.agents, access=self.access_list)
        self.evidence = Evidence(self, incidents=self.incidents)
        self.agent_discovery = AgentDiscovery(self, alerts=alerts)
        self.spending = Spending(self, alerts=alerts)
        self.budgets = Budgets(self, spending=self.spending)
        self.risk_acceptances = RiskAcceptances(self)
        self.local_rules = LocalRules(self, rules=None)  # for commands; a gateway has its own
        self.circuits = Circuits(self, alerts=alerts)
        self.detector_circuits = Circuits(self, alerts=alerts, source=AlertSource.DETECTOR)


class Gateway(Lasting):
    """Every service that an edge may call: those of `Lasting`, and those that depend on settings and rules."""

    def __init__(self, settings: Settings, shield: Shield, lasting: Lasting, client: Client) -> None:
        """shield: the rules of the files. lasting: the services that a reload keeps. client: of all connections."""
        vars(self).update(vars(lasting))
        self.lasting = lasting
        self.client = client
        self.settings = settings
        self.shield = copy(shield)  # others may share the given one
        self.secrets = ProviderKeys(self.store.keyfile, settings)
        # For keys that have no policy of their own.
        self.policy = ShieldPolicy(
            mode=ShieldMode(settings.shield_mode),
            unscannable=Unscannable(settings.unscannable),
            outbound=OutboundAction(settings.outbound_action),
            outbound_stream=OutboundStream(settings.outbound_stream),
            tool_injection=settings.tool_injection,
        )
        self._make_scans(shield)
        self._make_chat()
        self._make_checks()
        self._make_fleet_and_outputs()

    def _make_scans(self, base: Shield) -> None:
        settings, shield = self.settings, self.shield
        self.rules = Rules(self, base=base, shield=shield)
        self.local_rules = LocalRules(self, rules=self.rules)
        self.rule_trials = RuleTrials(self, rules=self.rules, policies=self.policies, policy=self.policy)
        scanner = TextScanner(
            shield, self.store, self.ids, rules=self.rules, max_wait_seconds=settings.max_wait_seconds
        )
        self.detector_calls = DetectorCalls(
            self,
            circuits=self.detector_circuits,
            keys=self.secrets,
            reader=JsonReader(self.client, user_agent=_USER_AGENT),
            scanner=scanner,
        )
        self.detectors = Detectors(
            self,
            circuits=self.detector_circuits,
            keys=self.secrets,
            resolve=addresses_of,
            calls=self.detector_calls,
        )
        self.scans = Scans(
            self,
            scanner=scanner,
            detectors=self.detector_calls,
            alerts=self.alerts,
            policy=self.policy,
            policies=self.policies,
            acceptances=self.risk_acceptances,
            max_text_chars=settings.max_text_chars,
        )
        self.new_verdicts = NewVerdicts(self, policies=self.policies, policy=self.policy)
        self.harmless = Harmless(
            self,
            alerts=self.alerts,
            acceptances=self.risk_acceptances,
            new_verdicts=self.new_verdicts,
            rules=self.rules,
        )
        self.shield_tests = ShieldTests(self, shield=shield, rules=self.rules, detectors=self.detector_calls)
        self.security_scans = SecurityScans(
            self,
            shield=shield,
            scan_paths=settings.scan_paths,
            max_text_chars=settings.max_text_chars,
        )

    def _make_chat(self) -> None:
        settings, secrets, upstream = self.settings, self.secrets, settings_provider(self.settings)
        dialect = OpenAiDialect(max_messages=settings.max_messages, max_chars=settings.max_chat_chars)
        open_http = partial(HttpUpstream, self.client, dialect, ids=self.ids, user_agent=_USER_AGENT)
        self.routing = Routing(
            self,
            circuits=self.circuits,
            keys=secrets,
            connect=partial(connect, settings, open_http, EchoModel(clock=self.clock, ids=self.ids)),
            upstream=upstream,
            attempts_seconds=settings.upstream_attempts_seconds,
        )
        self.chat = Chat(
            self,
            alerts=self.alerts,
            scanner=self.scans.scanner,
            detectors=self.detector_calls,
            dialect=dialect,
            policy=self.policy,
            routing=self.routing,
            costs=ChatCosts(load_prices(settings.prices), reply_tokens=settings.budget_reply_tokens),
            spending=self.spending,
            acceptances=self.risk_acceptances,
            access=self.access,
            policies=self.policies,
            agents=self.agent_discovery,
            syncs_always=settings.audit_sync == "always",
        )
        self.guardrails = Guardrails(scans=self.scans, policy_of=self.chat.policy_of)
        self.providers = Providers(
            self,
            circuits=self.circuits,
            keys=secrets,
            resolve=addresses_of,
            routing=self.routing,
            from_settings=upstream,
        )

    def _make_checks(self) -> None:
        settings, shield = self.settings, self.shield
        self.health = Health(
            shield=shield, store=self.store, upstream=self.routing.health, detectors=self.detector_calls.health
        )
        self.running = Running(
            settings=settings,
            shield=shield,
            store=self.store,
            health=self.health,
            policy=self.policy,
            is_shell=self.is_shell,
        )
        self.trust_audits = TrustAudits(self, running=self.running)
        self.audit_chain = AuditChain(self, alerts=self.alerts)
        self.reports = Reports(self, scores=self.trust_audits.point)
        self.report_schedules = ReportSchedules(self)
        self.runtime_settings = RuntimeSettings(self, settings=settings)
        self.retention = Retention(self, days=self.runtime_settings.days)

    def _make_fleet_and_outputs(self) -> None:
        settings, secrets, client = self.settings, self.secrets, self.client
        self.fleet = Fleet(
            store=self.store,
            alerts=self.alerts,
            health=self.health,
            traffic=self.traffic,
            load=self.host_load,
            scores=self.trust_audits.point,
            started_at=self.started_at,
        )
        self.fleet_peers = FleetPeers(
            self,
            fleet=self.fleet,
            reader=JsonReader(client, user_agent=_USER_AGENT),
            resolve=addresses_of,
            keys=secrets,
        )
        self.event_outputs = EventOutputs(
            self,
            post=client.request,
            secrets=secrets,
            folder=None if settings.data_dir == ":memory:" else settings.data_dir,
        )
        self.event_sender = EventSender(outputs=self.event_outputs, leases=self.leases)
