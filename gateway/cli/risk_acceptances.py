"""`acceptances list|create|revoke`: accepted risks. Rules are kept in `services.risk_acceptances`."""

from gateway.cli.command import shown
from gateway.cli.resource import Flag, Row, commands_of, expiry
from gateway.operations.risk_acceptances import ACCEPTANCE_OPERATIONS

COMMANDS = commands_of(
    "acceptances",
    ACCEPTANCE_OPERATIONS,
    "id (ra_…) of the acceptance",
    Row(
        "list",
        "List the risk acceptances, newest first.",
        "--json",
        operation="risk_acceptances.list",
        columns={
            "ID": "id",
            "SCOPE": "scope",
            "RULE": "rule",
            "FOR": lambda view: shown(view["agent"] or (view["digest"] or "")[:12] or "-", 30),
            "STATUS": "status",
            "UNTIL": "until",
            "BY": "accepted_by",
            "REASON": lambda view: shown(view["reason"], 50),
        },
    ),
    Row(
        "create",
        "Accept what a rule finds, for a while: it stays visible and adds nothing to scores.",
        "--scope rule --rule override-prior-orders --until 30d --reason 'test data'",
        operation="risk_acceptances.create",
        flags=(
            Flag("scope", "finding, rule_agent or rule"),
            Flag("rule", "id of the rule"),
            Flag("agent", "for rule_agent: the agent's name"),
            Flag("key", "for rule_agent: id or prefix of the one key it applies to"),
            Flag("any_key", "for rule_agent without --key: any key that claims the agent's name"),
            Flag("digest", "for finding: SHA-256 of the text, as alerts and audit events have it"),
            Flag("alert", "for finding: id of the alert that shows it, instead of rule and digest"),
            Flag("request", "request (req_… or trf_…) whose new verdict to print", metavar="ID"),
            expiry("until", "such as 30d or a date, 90 days at most"),
            Flag("reason", "why, for later readers"),
        ),
        note="{new_verdict[says]}\n{rule} is accepted until {until}:",
        prints="id",
        needs_rules=True,
    ),
    Row(
        "revoke",
        "Revoke a risk acceptance.",
        "ra_01J…",
        operation="risk_acceptances.revoke",
        note="{id} ({rule}) is revoked",
    ),
)
