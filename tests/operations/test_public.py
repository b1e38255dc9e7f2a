"""The rows of the public API: none is open by omission, and each can be served."""

from dataclasses import fields

import pytest

from gateway.operations.every import PUBLIC_OPERATIONS
from gateway.operations.operation import Door, Operation

OPEN = {"health": Door.OPTIONAL, "openapi": Door.OPEN, "metrics": Door.LOOPBACK}


def test_names_and_routes_are_unique() -> None:
    assert (
        len({row.name for row in PUBLIC_OPERATIONS})
        == len({row.route for row in PUBLIC_OPERATIONS})
        == len(PUBLIC_OPERATIONS)
    )


@pytest.mark.parametrize("row", PUBLIC_OPERATIONS, ids=lambda row: row.name)
def test_row_asks_for_a_key_with_a_scope_unless_it_is_meant_to_be_open(row: Operation) -> None:
    assert row.door is OPEN.get(row.name, Door.KEY)
    assert (row.needs is None) == (row.door in (Door.OPTIONAL, Door.OPEN))


@pytest.mark.parametrize("row", PUBLIC_OPERATIONS, ids=lambda row: row.name)
def test_row_with_a_call_says_what_it_gives(row: Operation) -> None:
    assert (row.call is None) == (row.gives is None)
    assert row.summary.endswith(".")
    assert row.route[1].startswith("/api/v1/") or row.name == "metrics" or row.name.startswith("guardrail.")


@pytest.mark.parametrize("row", [row for row in PUBLIC_OPERATIONS if row.query], ids=lambda row: row.name)
def test_filter_has_a_field_for_every_parameter(row: Operation) -> None:
    assert row.takes is not None
    assert {parameter.name for parameter in row.query} <= {one.name for one in fields(row.takes)}  # type: ignore[arg-type]
