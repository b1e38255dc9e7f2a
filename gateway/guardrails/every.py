"""All contracts: a table of routes."""

from gateway.guardrails import agentgateway, fms, lakera, litellm, llm_guard, moderations, portkey

_MODULES = (litellm, moderations, lakera, portkey, agentgateway, fms, llm_guard)
CONTRACTS = tuple(one for module in _MODULES for one in module.CONTRACTS)
OPERATIONS = ("chat.completions", "shield.scan", *dict.fromkeys(f"guardrail.{one.name}" for one in CONTRACTS))
"""What the records of traffic name."""
