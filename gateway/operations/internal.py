"""All rows of the internal API, `/api`. They stand beside what they show, a file for each noun."""

from gateway.operations.about import ABOUT_OPERATIONS
from gateway.operations.access_list import ACCESS_OPERATIONS
from gateway.operations.agents import AGENT_OPERATIONS
from gateway.operations.alerts import ALERT_OPERATIONS
from gateway.operations.audit import AUDIT_OPERATIONS
from gateway.operations.budgets import BUDGET_OPERATIONS
from gateway.operations.event_outputs import EVENT_OUTPUT_OPERATIONS
from gateway.operations.fleet import FLEET_OPERATIONS
from gateway.operations.keys import KEY_OPERATIONS
from gateway.operations.policies import POLICY_OPERATIONS
from gateway.operations.probes import FEED_OPERATIONS
from gateway.operations.providers import PROVIDER_OPERATIONS
from gateway.operations.reports import REPORT_OPERATIONS
from gateway.operations.risk_acceptances import ACCEPTANCE_OPERATIONS
from gateway.operations.security_scans import SECURITY_SCAN_OPERATIONS
from gateway.operations.settings import SETTING_OPERATIONS
from gateway.operations.shield import SHIELD_OPERATIONS
from gateway.operations.traffic import TRAFFIC_OPERATIONS
from gateway.operations.trust_audits import TRUST_AUDIT_OPERATIONS
from gateway.operations.users import SIGN_IN_OPERATIONS, USER_OPERATIONS

INTERNAL_OPERATIONS = (
    *SIGN_IN_OPERATIONS,
    *KEY_OPERATIONS,
    *USER_OPERATIONS,
    *ACCESS_OPERATIONS,
    *POLICY_OPERATIONS,
    *PROVIDER_OPERATIONS,
    *BUDGET_OPERATIONS,
    *ACCEPTANCE_OPERATIONS,
    *TRUST_AUDIT_OPERATIONS,
    *AUDIT_OPERATIONS,
    *REPORT_OPERATIONS,
    *SECURITY_SCAN_OPERATIONS,
    *EVENT_OUTPUT_OPERATIONS,
    *SETTING_OPERATIONS,
    *ALERT_OPERATIONS,
    *AGENT_OPERATIONS,
    *TRAFFIC_OPERATIONS,
    *FLEET_OPERATIONS,
    *SHIELD_OPERATIONS,
    *FEED_OPERATIONS,
    *ABOUT_OPERATIONS,
)
