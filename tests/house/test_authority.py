"""A change of what somebody may do goes through one door, which also writes the audit event and wakes every process."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "gateway").rglob("*.py"))
TABLES = {
    "access_entries",
    "api_keys",
    "budgets",
    "detectors",
    "local_rules",
    "policies",
    "providers",
    "risk_acceptances",
    "rule_overrides",
    "users",
}
WRITES = re.compile(rf"\b(INSERT INTO|UPDATE|DELETE FROM)\s+({'|'.join(sorted(TABLES))})\b")
NO_CHANGE_OF_AUTHORITY = {"MARK_FIRST_USED", "MARK_USED", "ADD_HITS"}


def statements(tree: ast.Module) -> set[str]:
    """Return the names of the constants of a file that write a table of authority."""
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and WRITES.search(ast.unparse(node.value))
        for target in node.targets
        if isinstance(target, ast.Name)
    } - NO_CHANGE_OF_AUTHORITY


def calls(tree: ast.AST, name: str) -> list[ast.Call]:
    """Return the calls of a function or method of this name."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and name == getattr(node.func, "attr", getattr(node.func, "id", None))
    ]


def test_every_statement_that_writes_a_table_of_authority_is_run_by_an_authority_transaction() -> None:
    found = 0
    for path in FILES:
        tree = ast.parse(path.read_text("utf-8"))
        names = statements(tree)
        nodes = [*ast.walk(tree)]
        uses = {id(node) for node in nodes if isinstance(node, ast.Name) and node.id in names} - {
            id(target) for node in nodes if isinstance(node, ast.Assign) for target in node.targets
        }
        through = {id(call.args[0]) for call in calls(tree, "change") if call.args}
        assert uses <= through, f"{path}: {names} must be run by AuthorityTransaction.change"
        found += len(uses)
    assert found >= 1


def mapped(tree: ast.Module, kind: str) -> list[str]:
    """Return the tables that a file maps by calls of a kind of table, or of a class that inherits from it."""
    found = calls(tree, kind)
    for node in ast.walk(tree):
        bases = node.bases if isinstance(node, ast.ClassDef) else []
        if any(isinstance(base, ast.Subscript) and ast.unparse(base.value) == kind for base in bases):
            found += calls(node, "__init__") or calls(tree, node.name)
    return [ast.literal_eval(call.args[0]) for call in found]


def test_every_table_of_authority_is_mapped_once_and_as_one() -> None:
    of_authority = []
    for path in FILES:
        tree = ast.parse(path.read_text("utf-8"))
        of_authority += mapped(tree, "AuthorityTable")
        wrong = TABLES.intersection(mapped(tree, "Table"))
        assert not wrong, f"{path}: {wrong} must be an AuthorityTable"
    assert sorted(of_authority) == sorted(TABLES)


def test_an_authority_table_writes_by_its_authority_transaction_alone() -> None:
    tree = ast.parse((ROOT / "gateway/store/table.py").read_text("utf-8"))
    (table,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "AuthorityTable")
    methods = [node for node in table.body if isinstance(node, ast.FunctionDef)]
    for method in methods:
        takes = ast.unparse(method.args.args[1].annotation or method)
        assert takes == "AuthorityTransaction", f"{method.name} takes a {takes}"
        assert len(calls(method, "change")) == 1, method.name
        assert not calls(method, "execute"), method.name
    assert {method.name for method in methods} == {"insert", "put", "change", "remove"}


def test_the_statements_of_a_table_are_known_to_the_mapper_alone() -> None:
    """So that no repository runs that of an `AuthorityTable` as it likes."""
    private = re.compile(r"\._(insert|put|update|delete)_sql\b")
    users = {path.relative_to(ROOT).as_posix() for path in FILES if private.search(path.read_text("utf-8"))}
    assert users == {"gateway/store/table.py"}


def test_only_the_audit_service_makes_an_authority_transaction() -> None:
    made = re.compile(r"(?<!class )\bAuthorityTransaction\(")
    makers = {path.relative_to(ROOT).as_posix() for path in FILES if made.search(path.read_text("utf-8"))}
    assert makers == {"gateway/services/audit.py"}
