"""Other scanners behind one call. Each is used if it is installed; nothing is installed."""

import importlib
import importlib.util
import re
import re._parser as parser  # type: ignore[import-not-found]
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path

from gateway.shield import Direction, RuleSet, Shield
from gateway.shield.normalize import Normalizer
from gateway.shield.unparse import bare, unparse

Scan = Callable[[str], object]
_LONGEST_SOURCE = 400
_WIDEST = 150


def shield_scan(shield: Shield) -> Scan:
    """Return the whole shield."""
    return lambda text: shield.scan(text, Direction.INBOUND)


def naive(ruleset: RuleSet) -> Scan:
    """Return every rule's regex searched in the view it is written for, one after the other."""
    rules = [ruleset.layout.rule(number) for number in range(ruleset.layout.count)]
    normalized = [re.compile(plan.source, re.ASCII).finditer for brief, plan in rules if brief.view != "text"]
    as_sent = [re.compile(plan.source, re.ASCII).finditer for brief, plan in rules if brief.view == "text"]
    fold = Normalizer()

    def scan(text: str) -> int:
        view = fold.normalize(text).text
        return sum(len(list(find(view))) for find in normalized) + sum(len(list(find(text))) for find in as_sent)

    return scan


def hyperscan(ruleset: RuleSet) -> tuple[Scan, list[str]] | None:
    """Return Hyperscan with offsets over the rules it takes, and their ids.

    What looks around in a rule has no form there and is left out, so that it has less to look at than the shield. Rules
    that take it minutes to compile, long and wide ones, and those beyond ASCII are left out altogether.
    """
    try:
        module = importlib.import_module("hyperscan")
    except ImportError:
        return None
    kept: dict[bool, list[bytes]] = {False: [], True: []}
    names = []
    for number in range(ruleset.layout.count):
        brief, plan = ruleset.layout.rule(number)
        if len(plan.source) > _LONGEST_SOURCE or plan.reach_chars > _WIDEST:
            continue
        tree = parser.parse(plan.source, re.ASCII)
        source = unparse(bare(tree, tree.state), tree.state.flags & re.IGNORECASE)
        if not source.isascii():
            continue
        try:
            module.Database().compile(expressions=[source.encode()], ids=[0], flags=[module.HS_FLAG_SOM_LEFTMOST])
        except module.error:
            continue
        kept[brief.view == "text"].append(source.encode())
        names.append(brief.id)
    databases = {}
    for is_text, sources in kept.items():
        if sources:
            databases[is_text] = module.Database()
            databases[is_text].compile(
                expressions=sources, ids=list(range(len(sources))), flags=[module.HS_FLAG_SOM_LEFTMOST] * len(sources)
            )
    fold = Normalizer()

    def scan(text: str) -> int:
        found: list[tuple[int, int, int]] = []

        def note(rule: int, start: int, end: int, flags: int, context: object) -> None:
            found.append((rule, start, end))

        for is_text, database in databases.items():
            subject = text if is_text else fold.normalize(text).text
            database.scan(subject.encode("utf-8", "replace"), match_event_handler=note)
        return len(found)

    return scan, names


def detect_secrets() -> Scan | None:
    """Return detect-secrets with all its plugins, line by line.

    Not where LLM Guard is: that brings a package of the same name, so the two are measured apart.
    """
    if importlib.util.find_spec("llm_guard"):
        return None
    try:
        scan_line = importlib.import_module("detect_secrets.core.scan").scan_line
        settings = importlib.import_module("detect_secrets.settings").default_settings()
    except ImportError:
        return None
    settings.__enter__()
    # The settings hold as long as they are held on to.
    return lambda text, settings=settings: [found for line in text.splitlines() for found in scan_line(line)]  # type: ignore[misc]


def llm_guard() -> Scan | None:
    """Return LLM Guard's scanner of secrets."""
    # Its package imports every scanner and their models at once; only this one is wanted.
    found = importlib.util.find_spec("llm_guard")
    if found is None or found.submodule_search_locations is None:
        return None
    for name in ("llm_guard", "llm_guard.input_scanners"):
        package = types.ModuleType(name)
        package.__path__ = [str(Path(found.submodule_search_locations[0], *name.split(".")[1:]))]
        sys.modules.setdefault(name, package)
    try:
        scanner = importlib.import_module("llm_guard.input_scanners.secrets").Secrets()
    except ImportError as error:
        print(f"llm-guard: {error}")
        return None
    return lambda text: scanner.scan(text)


def presidio() -> Scan | None:
    """Return the patterns of Presidio's recognizers, without a language model."""
    try:
        registry = importlib.import_module("presidio_analyzer").RecognizerRegistry()
        kind = importlib.import_module("presidio_analyzer").PatternRecognizer
    except ImportError:
        return None
    registry.load_predefined_recognizers(languages=["en"])
    patterned: Sequence[object] = [one for one in registry.recognizers if isinstance(one, kind)]
    return lambda text: [one.analyze(text, one.supported_entities) for one in patterned]  # type: ignore[attr-defined]
