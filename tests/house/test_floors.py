"""Imports point down, never up and never in a circle. The table is the plan of the house."""

from house.source import Source, sources

# Floor by room. Halves are the storeys that floor 7, 5 and 2 have inside.
FLOORS = {
    "gateway.__main__": 7.8,
    "gateway.cli": 7.5,
    "gateway.compose": 7.2,
    "gateway.api": 6.0,
    "gateway.mcp": 6.0,
    "gateway.operations": 5.5,
    "gateway.jobs": 5.5,
    "gateway.app": 5.0,
    "gateway.services": 4.0,
    "gateway.guardrails": 3.5,
    "gateway.metrics": 3.5,
    "gateway.detectors": 2.5,
    "gateway.store": 3.0,
    "gateway.llm": 3.0,
    "gateway.outputs": 3.0,
    "gateway.supervisor": 3.0,
    "gateway.responses": 3.0,
    "gateway.domain": 2.0,
    "gateway.auth": 2.0,
    "gateway.settings": 2.0,
    "gateway.field_types": 2.0,
    "gateway.schema": 2.0,
    "gateway.strict_json": 2.0,
    "gateway.offload": 2.0,
    "gateway.log": 2.0,
    "gateway.errors": 1.0,
    "gateway.clock": 1.0,
    "gateway.records": 1.0,
    "gateway.spelling": 1.0,
    "gateway.bundle": 1.0,
    "gateway.signals": 1.0,
    "gateway.shield": 1.0,
    "gateway.http": 1.0,
}
ISLANDS = ("gateway.shield", "gateway.http")
NEVER_EACH_OTHER = ({"gateway.api", "gateway.mcp"}, {"gateway.store", "gateway.llm"})
KNOW_HTTP = (
    "gateway.api",
    "gateway.mcp",
    "gateway.cli",
    "gateway.compose",
    "gateway.app",
    "gateway.responses",
    "gateway.llm.upstream",
    "gateway.llm.reply_stream",
    "gateway.llm.faults",
    "gateway.outputs.webhook",
    "gateway.http",
)


def room(module: str) -> str:
    return ".".join(module.split(".")[:2])


def faults(source: Source) -> list[str]:
    """Return what is wrong with the imports of one file."""
    own = room(source.module)
    if own == "gateway":
        return [f"{source.name} imports {target}" for target in source.imports]
    found = []
    for target in sorted(source.imports):
        other = room(target)
        if other == own:
            continue
        if other not in FLOORS:
            found.append(f"{other} has no floor: add it to the table")
        elif own in ISLANDS:
            found.append(f"{source.name} is on an island and imports {target}")
        elif FLOORS[other] > FLOORS[own]:
            found.append(f"{source.name} imports {target} from above")
        elif any({own, other} <= pair for pair in NEVER_EACH_OTHER):
            found.append(f"{source.name} imports {target} from beside")
    return found


def circles() -> list[str]:
    """Return the chains of imports that end where they began."""
    graph = {source.module: sorted(source.imports) for source in sources()}
    done: set[str] = set()
    found: list[str] = []

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            found.append(" -> ".join((*trail[trail.index(name) :], name)))
        elif name not in done:
            for target in graph.get(name, ()):
                visit(target, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())
    return found


def test_a_file_imports_only_from_its_floor_and_below() -> None:
    assert [fault for source in sources() for fault in faults(source)] == []


def test_only_the_edges_and_the_upstream_know_the_http_island() -> None:
    knowing = [source.module for source in sources() if any(room(name) == "gateway.http" for name in source.imports)]
    assert [name for name in knowing if not name.startswith(KNOW_HTTP)] == []


def test_no_module_imports_itself_in_a_circle() -> None:
    assert circles() == []
