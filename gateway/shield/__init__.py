"""The shield: texts in, verdicts out. An island: it imports nothing of the rest of the gateway, and waits for nothing.

shield = gateway.shield.load()
result = shield.scan("some text", Direction.INBOUND)
"""

import functools
import hashlib
import os
from collections.abc import Sequence

from gateway.shield import data_files, local_rules
from gateway.shield.attack_model import WEIGHTS_FILE, AttackModel
from gateway.shield.data_files import PLANS_FILE, RULES_FILE
from gateway.shield.detections import Detection, Direction, ScanResult, Severity, Verdict, redact
from gateway.shield.engine import Shield
from gateway.shield.literals import GRAMS_FILE
from gateway.shield.rules import (
    LOCAL,
    Rule,
    RuleError,
    RuleSet,
    load_rules,
    planned_rules,
    try_rules,
)
from gateway.shield.scoring import DEFAULT_POLICY, Policy, combine, judge
from gateway.shield.suite import SUITE_FILE

__all__ = [
    "DEFAULT_POLICY",
    "PLANS_FILE",
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
    "read_all",
    "redact",
    "try_rules",
]


def load(rules_path: str | os.PathLike[str] | None = None, extra: Sequence[str] = ()) -> Shield:
    """Make a shield from a rule file, or from the rules that come with the gateway.

    extra: files or folders of local rules, which are added.
    Of a file of one's own every regex is timed first, but for those that come along, which were.

    Raises:
        RuleError: the file cannot be read, or is no valid rule file, or a regex in it takes too long.
    """
    try:
        known = _load_planned()
        if rules_path is not None:
            with open(rules_path, "rb") as file:
                raw = file.read()
        elif extra:
            raw = data_files.read(RULES_FILE)
        else:
            return Shield(known or load_rules(data_files.read(RULES_FILE)), model=AttackModel())
        ruleset = load_rules(local_rules.merged(raw, extra) if extra else raw, known=known)
        try_rules(ruleset, known, prefix=LOCAL if rules_path is None else "")
        return Shield(ruleset, model=AttackModel())
    except RuleError as error:
        path = local_rules.file_of(error.rule, extra) if error.rule.startswith(LOCAL) else ""
        raise (error.within(path) if path else error) from error
    except OSError as error:
        raise RuleError("", "", f"cannot be read: {error.strerror or error}") from error


def read_all() -> None:
    """Read every data file that a server may ask for later, so that the archive may be replaced from now on."""
    for name in (RULES_FILE, SUITE_FILE, WEIGHTS_FILE, GRAMS_FILE):
        data_files.compressed(name)
    _load_planned()


@functools.cache
def _load_planned() -> RuleSet | None:
    """Return the rules that come with the gateway, unless they would have to be planned first."""
    try:
        plans = data_files.read_once(PLANS_FILE)
    except FileNotFoundError:
        return None  # a checkout that was never built
    source, digest = functools.partial(data_files.read, RULES_FILE), None
    # In an archive the plans belong to the rules beside them, which are parsed when somebody asks for them.
    if not data_files.is_in_archive():
        digest = hashlib.sha256(source()).hexdigest()
    return planned_rules(plans, source=source, digest=digest)
