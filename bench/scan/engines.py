"""Other scanners behind one call. Each is used if it is installed; nothing is installed."""

import importlib
import importlib.util
import logging
import re
import sys
import tempfile
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gateway.shield import Direction, RuleSet, Shield
from gateway.shield.normalize import Normalizer
from gateway.shield.regex_tree import REPEATS, ops, parser, unparse

Scan = Callable[[str], object]
_LONGEST_SOURCE = 400
_WIDEST = 150


def shield_scan(shield: Shield, direction: Direction = Direction.INBOUND) -> Scan:
    """Return the whole shield."""
    return lambda text: shield.scan(text, direction)


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
    """Return detect-secrets as its own command runs it: a file, with the default settings.

    Not where LLM Guard is: that brings a package of the same name, so the two are measured apart.
    """
    if importlib.util.find_spec("llm_guard"):
        return None
    try:
        collection = importlib.import_module("detect_secrets.core.secrets_collection").SecretsCollection
        settings = importlib.import_module("detect_secrets.settings").default_settings
    except ImportError:
        return None
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name, "text.txt")

    def scan(text: str, folder: object = folder) -> object:
        path.write_text(text, "utf-8", "replace")
        found = collection()
        with settings():
            found.scan_file(str(path))
        return found

    return scan


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
        # It writes a line of log for each text, which is no part of looking for secrets.
        structlog = importlib.import_module("structlog")
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
        scanner = importlib.import_module("llm_guard.input_scanners.secrets").Secrets()
    except ImportError as error:
        print(f"llm-guard: {error}")
        return None
    return lambda text: scanner.scan(text)


def presidio() -> Scan | None:
    """Return Presidio's analyzer with its predefined recognizers, and a language model that does nothing."""
    try:
        module = importlib.import_module("presidio_analyzer")
        nlp = importlib.import_module("presidio_analyzer.nlp_engine")
        blank = importlib.import_module("spacy").blank("en")
    except ImportError:
        return None
    doc = blank.make_doc("")
    methods = {
        "load": lambda self: None,
        "is_loaded": lambda self: True,
        "process_text": lambda self, text, language: nlp.NlpArtifacts([], doc, [], [], self, language),
        "process_batch": lambda self, texts, language, **_: ((one, self.process_text(one, language)) for one in texts),
        "is_stopword": lambda self, word, language: False,
        "is_punct": lambda self, word, language: False,
        "get_supported_entities": lambda self: [],
        "get_supported_languages": lambda self: ["en"],
        "nlp": blank,
    }
    model = type("NoLanguageModel", (nlp.NlpEngine,), methods)
    registry = module.RecognizerRegistry()
    registry.load_predefined_recognizers(languages=["en"])
    logging.getLogger("presidio-analyzer").setLevel(logging.CRITICAL)
    analyzer = module.AnalyzerEngine(registry=registry, nlp_engine=model(), supported_languages=["en"])
    return lambda text: analyzer.analyze(text, language="en")


def bare(items: Iterable[Any], state: Any) -> list[Any]:
    """Return items without what only looks around or holds on: they match wherever the given ones do.

    state: of the parse tree they are from.
    """

    def part(items: Iterable[Any]) -> Any:
        return parser.SubPattern(state, bare(items, state))

    kept: list[Any] = []
    for op, arg in items:
        if op in (ops.AT, ops.ASSERT, ops.ASSERT_NOT):
            continue
        if op is ops.BRANCH:
            arg = None, [part(branch) for branch in arg[1]]
        elif op is ops.SUBPATTERN:
            arg = None, arg[1], arg[2], part(arg[3])
        elif op is ops.ATOMIC_GROUP:
            op, arg = ops.SUBPATTERN, (None, 0, 0, part(arg))
        elif op in REPEATS:
            op = ops.MAX_REPEAT if op is ops.POSSESSIVE_REPEAT else op
            arg = arg[0], arg[1], part(arg[2])
        kept.append((op, arg))
    return kept
