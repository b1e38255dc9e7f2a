"""The shield: texts in, verdicts out. An island: it imports nothing of the rest of the gateway, and waits for nothing.

shield = gateway.shield.load()
result = shield.scan("some text", Direction.INBOUND)
"""

import functools
import hashlib
import os
import sys

from gateway.shield.detections import Detection, Direction, ScanResult, Severity, Verdict
from gateway.shield.engine import Shield
from gateway.shield.linear import LinearModel
from gateway.shield.redact import redact
from gateway.shield.regexes import whole
from gateway.shield.rules import (
    Rule,
    RuleError,
    RuleSet,
    load_rules,
    planned_rules,
    try_rules,
    write_plans,
    write_regexes,
)
from gateway.shield.scoring import DEFAULT_POLICY, Policy, combine, judge

RULES_FILE = "rules.json"
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLANS_FILE = "rules.plans"
# The rules' regexes as the running Python compiles them.
REGEXES_FILE = f"_regexes/{sys.implementation.cache_tag}.pack"

__all__ = [
    "DEFAULT_POLICY",
    "PLANS_FILE",
    "REGEXES_FILE",
    "RULES_FILE",
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
    "write_plans",
    "write_regexes",
]


def load(rules_path: str | os.PathLike[str] | None = None) -> Shield:
    """Make a shield from a rule file, or from the rules that come with the gateway.

    Of a file of one's own every regex is timed first, but for those that come along, which were.

    Raises:
        RuleError: the file cannot be read, or is no valid rule file, or a regex in it takes too long.
    """
    try:
        if rules_path is not None:
            with open(rules_path, "rb") as file:
                raw = file.read()
            known = _load_planned()
            ruleset = load_rules(raw, known=known)
            try_rules(ruleset, known)
        else:
            ruleset = _load_planned() or load_rules(_read_beside(RULES_FILE))
        return Shield(ruleset, model=LinearModel(), leave=functools.partial(_leave_regexes, ruleset))
    except OSError as error:
        raise RuleError("", "", f"cannot be read: {error.strerror or error}") from error


def _load_planned() -> RuleSet | None:
    """Return the rules that come with the gateway, unless they would have to be planned first."""
    try:
        plans = _read_beside(PLANS_FILE)
    except FileNotFoundError:
        return None  # a checkout that was never built
    source, digest = functools.partial(_read_beside, RULES_FILE), None
    # In an archive the plans are of the rules beside them, which are read when somebody asks for them.
    if not hasattr(__spec__.loader, "archive"):
        digest = hashlib.sha256(source()).hexdigest()
    return planned_rules(plans, source=source, digest=digest, regexes=_read_regexes())


def _read_regexes() -> bytes | None:
    try:
        return whole(_read_beside(REGEXES_FILE), _read_beside)
    except (OSError, LookupError, ValueError):
        return None  # everything is compiled as it is met


def _leave_regexes(ruleset: RuleSet) -> None:
    """Have the compiled regexes that come with the gateway read from its archive, one when it is tried."""
    part, regexes = getattr(__spec__.loader, "part", None), ruleset.layout.regexes
    if part is not None and regexes:
        regexes.leave(REGEXES_FILE, lambda name, begin, end: part(_place(name), begin, end))


def _read_beside(name: str) -> bytes:
    """Read a file that lies beside the package, in a folder or in an archive.

    Raises:
        OSError: there is no such file.
    """
    # Whatever loaded this module reads its neighbours: a folder's loader and zipimport both can.
    read = getattr(__spec__.loader, "get_data", None)
    if read is None:
        raise FileNotFoundError(name)
    return bytes(read(_place(name)))


def _place(name: str) -> str:
    return os.path.join(_ROOT, *name.split("/"))
