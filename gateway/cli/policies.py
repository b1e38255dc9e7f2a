"""`policies list|create|update|remove`: what holds for the keys that have a policy. Rules: `services.policies`."""

from collections.abc import Sequence

from gateway.cli.resource import Flag, Row, commands_of
from gateway.domain.policies import MAX_CAPTURE_DAYS
from gateway.errors import InvalidRequest
from gateway.operations.policies import POLICY_OPERATIONS


def read_actions(texts: Sequence[str]) -> dict[str, str]:
    """Read ``pii=redact``, as often as it was given. ``none`` alone removes all."""
    if list(texts) == ["none"]:
        return {}
    if any("=" not in text for text in texts):
        raise InvalidRequest("--category must be a category, = and an action, such as pii=redact", param="--category")
    return {category: action for category, _, action in (text.partition("=") for text in texts)}


_FIELDS = (
    "mode",
    Flag("block_score", "lowest score of a BLOCK, 1 to 100"),
    Flag("review_score", "lowest score of a REVIEW, 1 to 100"),
    Flag(
        "category_actions",
        "weight of a category: block, review, allow or redact; repeat for more categories; none removes all",
        "category",
        "NAME=ACTION",
        read=read_actions,
        repeats=True,
    ),
    Flag("unscannable", "allow, review or block parts that cannot be read"),
    Flag("outbound", "block or redact replies"),
    Flag("capture", "keep none of the texts, redacted ones, or full ones"),
    Flag("capture_days", f"how long texts are kept, 1 to {MAX_CAPTURE_DAYS} (7)"),
)

COMMANDS = commands_of(
    "policies",
    POLICY_OPERATIONS,
    "id (pol_…) or name of the policy",
    Row(
        "list",
        "List the policies that keys may have.",
        "--json",
        columns={
            "ID": "id",
            "NAME": "name",
            "MODE": "mode",
            "BLOCK": "block_score",
            "REVIEW": "review_score",
            "CATEGORIES": "category_actions",
        },
    ),
    Row(
        "create",
        "Create a policy: mode, thresholds and weights for the keys that get it.",
        "--name lab --mode observe --category pii=redact",
        flags=(Flag("name", "what the policy is called"), *_FIELDS),
        note="{name} is a policy; give it to a key with `keys create --policy` or the API:",
        prints="id",
    ),
    Row(
        "update",
        "Change a policy; it holds for its keys at their next request.",
        "lab --block-score 80",
        operation="policies.change",
        flags=(Flag("name", "new name"), *_FIELDS),
        note="{id} ({name}) has version {version}",
    ),
    Row("remove", "Remove a policy that no key has.", "lab", note="{id} ({name}) is removed"),
)
