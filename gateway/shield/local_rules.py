"""Rules of an operator's own, from files or one by one, merged on top of a whole rule set.

The ids of local rules begin with `local:` and the names of their tables with `local-`, so that no later version of the
built-in set can clash with them.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway.shield.rules import LOCAL, RuleError, read_document

_TABLE = "local-"


def merged(base: bytes, paths: Sequence[str]) -> bytes:
    """Return a rule file with the rules of `base` followed by those of each file; folders give their *.json by name.

    Raises:
        RuleError: a file cannot be read or is no rule file, or a rule or table is not named as a local one.
    """
    read_document(base)
    document = json.loads(base)
    tables, rules = dict(document.get("tables", {})), list(document["rules"])
    seen = {rule["id"]: "the rule set" for rule in rules}
    for path in files(paths):
        try:
            extra = _read(path)
            for name, words in extra.get("tables", {}).items():
                if tables.setdefault(name, words) != words:
                    raise RuleError("", f"tables.{name}", "another file gives it other words")
            for rule in extra["rules"]:
                if rule["id"] in seen:
                    raise RuleError(rule["id"], "id", f"is also given in {seen[rule['id']]}")
                seen[rule["id"]] = path
            rules += extra["rules"]
        except RuleError as error:
            raise error.within(path) from error
    return written(tables, rules)


def with_rules(base: bytes, rules: Sequence[Mapping[str, object]]) -> bytes:
    """Return a rule file with the rules of `base` followed by others."""
    document = json.loads(base)
    return written(document.get("tables", {}), [*document["rules"], *rules])


def written(tables: Mapping[str, object], rules: Sequence[Mapping[str, object]]) -> bytes:
    """Return a rule file."""
    document = {"version": 1, "tables": tables, "rules": rules}
    return (json.dumps(document, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "surrogatepass")


def file_of(rule: str, paths: Sequence[str]) -> str:
    """Return the file that holds a local rule, or an empty text."""
    for path in files(paths):
        if any(entry["id"] == rule for entry in _read(path)["rules"]):
            return path
    return ""


def files(paths: Sequence[str]) -> Iterator[str]:
    """Yield the rule files that the paths name.

    Raises:
        RuleError: a folder cannot be read.
    """
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        try:
            names = sorted(name for name in os.listdir(path) if name.endswith(".json"))
        except OSError as error:
            raise RuleError("", "", f"cannot be read: {error.strerror or error}").within(path) from error
        yield from (os.path.join(path, name) for name in names)


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise RuleError("", "", f"cannot be read: {error.strerror or error}") from error
    rules, tables = read_document(raw)
    for rule in rules:
        if not rule.id.startswith(LOCAL):
            raise RuleError(rule.id, "id", f"must begin with {LOCAL} in an extra rule file, such as {LOCAL}{rule.id}")
    for name in tables:
        if not name.startswith(_TABLE):
            raise RuleError("", f"tables.{name}", f"must begin with {_TABLE} in an extra rule file")
    document: dict[str, Any] = json.loads(raw)
    return document
