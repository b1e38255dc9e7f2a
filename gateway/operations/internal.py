"""All rows of the internal API, `/api`. They stand beside what they show, a file for each noun."""

from gateway.operations.access_list import ACCESS_OPERATIONS
from gateway.operations.alerts import ALERT_OPERATIONS
from gateway.operations.keys import KEY_OPERATIONS
from gateway.operations.policies import POLICY_OPERATIONS
from gateway.operations.trust_audits import TRUST_AUDIT_OPERATIONS
from gateway.operations.users import SIGN_IN_OPERATIONS, USER_OPERATIONS

INTERNAL_OPERATIONS = (
    *SIGN_IN_OPERATIONS,
    *KEY_OPERATIONS,
    *USER_OPERATIONS,
    *ACCESS_OPERATIONS,
    *POLICY_OPERATIONS,
    *TRUST_AUDIT_OPERATIONS,
    *ALERT_OPERATIONS,
)
