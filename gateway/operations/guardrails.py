"""The rows of the contracts in which other gateways ask the shield."""

from gateway.domain.principals import Scope
from gateway.guardrails.contract import Contract
from gateway.guardrails.every import CONTRACTS
from gateway.operations.rows import row


def operation_of(contract: Contract) -> str:
    """Return the name of the row of a contract."""
    return f"guardrail.{contract.name}.{contract.route.rpartition('/')[2]}"


GUARDRAIL_OPERATIONS = tuple(
    row(
        operation_of(one),
        f"POST {one.route}",
        Scope.SHIELD_SCAN,
        one.about,
        is_openai=True,  # their clients, too, add query parameters of their own
        body_setting="max_chat_body_bytes",
        fails=("shield_unavailable", "audit_unavailable", "overloaded"),
    )
    for one in CONTRACTS
)
