"""The shield: texts in, verdicts out. An island: it imports nothing of the rest of the gateway, and waits for nothing.

    shield = gateway.shield.load()
    result = shield.scan("some text", Direction.INBOUND)
"""

from pathlib import Path

from gateway.shield.detections import Detection, Direction, ScanResult, Severity, Verdict
from gateway.shield.engine import Shield
from gateway.shield.redact import redact
from gateway.shield.rules import Rule, RuleError, RuleSet, load_rules, try_rules
from gateway.shield.scoring import DEFAULT_POLICY, Policy, combine, judge

__all__ = [
    "DEFAULT_POLICY",
    "Detection",
    "Direction",
    "Policy",
    "Rule",
    "RuleError",
    "RuleSet",
    "ScanResult",
    "Severity",
    "Shield",
    "Verdict",
    "combine",
    "judge",
    "load",
    "load_rules",
    "redact",
    "try_rules",
]


def load(rules_path: str | Path | None = None) -> Shield:
    """Make a shield from a rule file, or from the rules that come with the gateway.

    Of a file of one's own every regex is timed first; those that come along were.

    Raises:
        RuleError: the file cannot be read, or is no valid rule file, or a regex in it takes too long.
    """
    ruleset = load_rules(_read(rules_path))
    if rules_path is not None:
        try_rules(ruleset)
    return Shield(ruleset)


def _read(rules_path: str | Path | None) -> bytes:
    try:
        if rules_path is not None:
            return Path(rules_path).read_bytes()
        # rules.json lies beside the package, in a folder or in an archive: whatever loaded this module can read it.
        read = getattr(__spec__.loader, "get_data", None)
        if read is None:
            raise RuleError("", "", "cannot be read: this package was loaded by what reads no data")
        return bytes(read(str(Path(__file__).parents[2] / "rules.json")))
    except OSError as error:
        raise RuleError("", "", f"cannot be read: {error.strerror or error}") from error
