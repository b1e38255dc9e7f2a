"""Rules of gitleaks (TOML) as rules of ours, each with examples made for it. Reads no file and changes no rule.

What has no counterpart is told: a rule that needs a file's path, an allowlist of paths or commits, a keyword that may
stand anywhere in the file.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.cli.re2 import Translated, translate
from gateway.shield.detections import Direction
from gateway.shield.engine import Shield
from gateway.shield.patterns import PatternError
from gateway.shield.rules import RuleError, load_rules, try_rules
from gateway.shield.trial import specimens

_ID_PARTS = re.compile(r"[a-z0-9]{1,40}")
_MOST_TRIES = 60
_HARMLESS = "Release notes: nothing to see here."


@dataclass(slots=True)
class Imported:
    """What became of a file: rules as they stand in a rule file, rules left out, and what of others was changed.

    left_out: the rule and the reason.
    """

    rules: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def import_rules(document: Mapping[str, Any], *, taken: Collection[str] = ()) -> Imported:
    """Read a gitleaks configuration, parsed already. taken: ids that are in use.

    Raises:
        RuleError: the file is no such configuration.
    """
    entries = document.get("rules")
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise RuleError("", "rules", "must be a list of at least one [[rules]]")
    done = Imported()
    seen = set(taken)
    if "allowlist" in document or "allowlists" in document:
        done.notes.append("the allowlist of the whole file is not imported")
    if "extend" in document:
        done.notes.append("the configuration that the file extends is not imported")
    for place, entry in enumerate(entries):
        name = _id_of(entry.get("id"))
        try:
            if not name:
                raise PatternError("has no id")
            if name in seen:
                raise PatternError("another rule has this id")
            rule = _rule(entry, name, done.notes)
        except PatternError as error:
            done.left_out.append((name or f"rules[{place}]", str(error)))
            continue
        seen.add(name)
        done.rules.append(rule)
    return done


def _id_of(value: object) -> str:
    return "-".join(_ID_PARTS.findall(value.lower())[:12]) if isinstance(value, str) else ""


def _rule(entry: Mapping[str, Any], name: str, notes: list[str]) -> dict[str, Any]:
    regex = entry.get("regex")
    if not isinstance(regex, str) or not regex:
        raise PatternError("has no regex")
    if "path" in entry:
        raise PatternError("applies to files by their path")
    secret = entry.get("secretGroup") or None
    if secret is not None and (not isinstance(secret, int) or isinstance(secret, bool) or secret < 0):
        raise PatternError("secretGroup is not the number of a group")
    told = translate(regex, secret=secret, not_at_secret=_allowed(entry, name, notes))
    rule: dict[str, Any] = {
        "id": name,
        "name": name.replace("-", " ").capitalize(),
        "category": "secret",
        "severity": "high",
        "confidence": 0.8,
        "description": _text(entry.get("description")) or f"What looks like: {name.replace('-', ' ')}.",
        "direction": ["inbound", "outbound"],
        "view": "text",
        "pattern": told.pattern,
        "standards": ["OWASP LLM02:2025", "CWE-798"],
        "tags": ["gitleaks", *_texts(entry.get("tags"))],
        "match": [_HARMLESS],
        "pass": [_HARMLESS],
    }
    entropy = entry.get("entropy")
    if isinstance(entropy, int | float) and not isinstance(entropy, bool) and entropy > 0:
        rule["validator"] = f"entropy:{entropy:g}"
    return _proved(rule, _texts(entry.get("keywords")), told, notes)


def _proved(rule: dict[str, Any], keywords: list[str], told: Translated, notes: list[str]) -> dict[str, Any]:
    """Return the rule with examples that hold, once the loader took it.

    Raises:
        PatternError: the loader refuses it, or found no text that it matches.
    """
    name = rule["id"]
    try:
        shield = _alone(rule)
    except PatternError:
        if not keywords:
            raise
        words = dict.fromkeys(form for word in keywords for form in (word, word.lower(), word.upper(), word.title()))
        rule = rule | {"literals": [word for word in words if len(word) >= 2]}
        shield = _alone(rule)
        notes.append(f"{name}: a keyword must be in the match or at most 64 characters before it")
    for text in _candidates(told.pattern, keywords, name):
        if any(one.rule == name for one in shield.scan(text, Direction.OUTBOUND).detections):
            break
    else:
        raise PatternError("found no text that it matches")
    if told.bound is not None:
        notes.append(f"{name}: unbounded repeats are limited to {told.bound} times")
    return rule | {"match": [text], "pass": [_negative(shield, name, text)]}


def _alone(rule: dict[str, Any]) -> Shield:
    try:
        ruleset = load_rules(json.dumps({"version": 1, "rules": [rule]}).encode())
        try_rules(ruleset)
    except RuleError as error:
        raise PatternError(f"{error.field}: {error.reason}") from error
    return Shield(ruleset)


def _candidates(pattern: str, keywords: list[str], seed: str) -> Iterator[str]:
    for text in specimens(pattern, seed, count=_MOST_TRIES):
        yield text
        yield f" {text} "
        yield f"\n{text}\n"
        if keywords:
            yield f"{keywords[0]} = {text}\n"


def _negative(shield: Shield, name: str, text: str) -> str:
    """Return a text near the one that matches which does not: the longest beginning of it, as a rule."""
    for end in range(len(text) - 1, 2, -max(1, len(text) // 16)):
        near = text[:end].rstrip()
        if near and not any(one.rule == name for one in shield.scan(near, Direction.OUTBOUND).detections):
            return near
    return _HARMLESS


def _allowed(entry: Mapping[str, Any], name: str, notes: list[str]) -> list[str]:
    """Return the regexes of allowlists that can be stated: those that must match from the secret's first letter on."""
    lists = entry.get("allowlists", [])
    every = [*(lists if isinstance(lists, list) else []), entry.get("allowlist")]
    stated: list[str] = []
    lost = 0
    for one in every:
        if not isinstance(one, dict):
            continue
        regexes = _texts(one.get("regexes"))
        is_plain = one.get("regexTarget", "secret") == "secret" and str(one.get("condition", "OR")).upper() in (
            "OR",
            "||",
        )
        kept = [regex for regex in regexes if is_plain and regex.startswith("^")]
        stated += [regex[1:] for regex in kept]
        lost += len(regexes) - len(kept) + sum(len(_texts(one.get(key))) for key in ("paths", "commits", "stopwords"))
    if lost:
        notes.append(f"{name}: {lost} entries of its allowlist are not imported")
    return stated


def _text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str) and one] if isinstance(value, list) else []
