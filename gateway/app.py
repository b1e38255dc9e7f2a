"""The services and the store, held together. No behaviour; `wiring` makes them."""

from dataclasses import dataclass

from gateway.clock import Clock, Ids
from gateway.log import Log
from gateway.metrics import Metrics
from gateway.services.access_guard import AccessGuard
from gateway.services.access_list import AccessList
from gateway.services.agent_discovery import AgentDiscovery
from gateway.services.agents import Agents
from gateway.services.alerts import Alerts
from gateway.services.archive_watch import ArchiveWatch
from gateway.services.audit import Audit
from gateway.services.audit_chain import AuditChain
from gateway.services.audit_export import AuditExport
from gateway.services.authentication import Authentication
from gateway.services.budgets import Budgets
from gateway.services.chat import Chat
from gateway.services.circuits import Circuits
from gateway.services.event_outputs import EventOutputs
from gateway.services.event_sender import EventSender
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
from gateway.services.policies import Policies
from gateway.services.posture import Posture
from gateway.services.provider_keys import ProviderKeys
from gateway.services.provider_test import ProviderTest
from gateway.services.providers import Providers
from gateway.services.reports import Reports
from gateway.services.retention import Retention
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


@dataclass(eq=False, kw_only=True)
class Lasting:
    """What lives as long as the process, whatever settings and rules are read again. It needs no rules.

    is_shell: this process is a command, which serves nobody. started_at: when the gateway or its group began to serve.
    """

    clock: Clock
    ids: Ids
    log: Log
    metrics: Metrics
    store: Store
    audit: Audit
    keys: Keys
    authentication: Authentication
    alerts: Alerts
    false_positives: FalsePositives
    traffic: Traffic
    agents: Agents
    agent_discovery: AgentDiscovery
    leases: Leases
    started_at: int
    is_shell: bool
    host_load: HostLoad
    feed: Feed
    first_start: FirstStart
    users: Users
    sign_in_throttle: SignInThrottle
    signin: SignIn
    access: AccessGuard
    access_list: AccessList
    policies: Policies
    budgets: Budgets
    spending: Spending
    risk_acceptances: RiskAcceptances
    circuits: Circuits


@dataclass(eq=False, kw_only=True)
class Gateway(Lasting):
    """Every service that an edge may call. A reload makes a new one that shares the services of `Lasting`."""

    settings: Settings
    shield: Shield
    audit_chain: AuditChain
    audit_export: AuditExport
    scans: Scans
    shield_tests: ShieldTests
    rules: Rules
    new_verdicts: NewVerdicts
    fleet: Fleet
    retention: Retention
    archive_watch: ArchiveWatch
    fleet_peers: FleetPeers
    chat: Chat
    posture: Posture
    trust_audits: TrustAudits
    reports: Reports
    security_scans: SecurityScans
    runtime_settings: RuntimeSettings
    event_outputs: EventOutputs
    event_sender: EventSender
    health: Health
    providers: Providers
    provider_test: ProviderTest
    routing: Routing
    secrets: ProviderKeys
