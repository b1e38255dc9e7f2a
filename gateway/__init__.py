"""The security gateway for LLM and agent traffic.

The floors, from the top: cli and compose; the edges api and mcp; operations, jobs and app; services; metrics; store,
llm and supervisor; domain, auth, settings, schema, strict_json and log; errors, clock and bundle. The islands shield
and http import nothing of the rest. Imports point down only; tests/house holds the table.
"""

__version__ = "0.1.0"
