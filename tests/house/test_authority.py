"""Whoever changes what somebody may do goes through one door, which also writes the audit event and tells every process."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "gateway").rglob("*.py"))
TABLES = "api_keys|policies|users|access_entries|risk_acceptances|rule_overrides|providers|budgets"
WRITES = re.compile(rf"\b(INSERT INTO|UPDATE|DELETE FROM)\s+({TABLES})\b")
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


def test_every_statement_that_writes_a_table_of_authority_is_run_by_an_authority_transaction() -> None:
    found = 0
    for path in FILES:
        tree = ast.parse(path.read_text("utf-8"))
        names = statements(tree)
        nodes = [*ast.walk(tree)]
        uses = {id(node) for node in nodes if isinstance(node, ast.Name) and node.id in names} - {
            id(target) for node in nodes if isinstance(node, ast.Assign) for target in node.targets
        }
        through = {
            id(node.args[0])
            for node in nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "change"
            if node.args
        }
        assert uses <= through, f"{path}: {names} must be run by AuthorityTransaction.change"
        found += len(uses)
    assert found >= 20


def test_only_the_audit_service_makes_an_authority_transaction() -> None:
    makers = {path.relative_to(ROOT).as_posix() for path in FILES if "AuthorityTransaction(" in path.read_text("utf-8")}
    assert makers == {"gateway/services/audit.py"}
