"""All contracts: a table of routes."""

from gateway.guardrails import agentgateway, fms, lakera, litellm, llm_guard, moderations, portkey

CONTRACTS = (
    *litellm.CONTRACTS,
    *moderations.CONTRACTS,
    *lakera.CONTRACTS,
    *portkey.CONTRACTS,
    *agentgateway.CONTRACTS,
    *fms.CONTRACTS,
    *llm_guard.CONTRACTS,
)
NAMES = tuple(dict.fromkeys(one.name for one in CONTRACTS))
"""Of the products, as records have them."""
