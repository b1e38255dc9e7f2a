"""Rows that are written where nothing is indexed, and moved in batches to where they are found.

A row of the audit log or of the traffic touches a page for each index of its table, and a commit writes every page
that it touched. So what is committed before an answer goes to a table without an index, such as `traffic_fresh`, and is
moved to `traffic` when some hundred rows have come together. Who reads asks the view, `traffic_all`, which has both: a
row is there from its commit on, once and at the same place, for every process and after any end. Who reads very many
rows, or deletes some, settles first and asks the table alone.
"""

from itertools import count

from gateway.domain.audit import GENESIS_HASH
from gateway.store.database import Insert, Transaction

TABLES = ("audit_events", "traffic")
# The end of a chain is that of its fresh events, as long as it has any.
NOTE_ENDS = """
    INSERT INTO audit_heads (instance_id, seq, hash, first_seq, first_prev_hash)
    SELECT instance_id, seq, hash, 1, :genesis FROM audit_events_fresh
     WHERE position IN (SELECT MAX(position) FROM audit_events_fresh GROUP BY instance_id)
        ON CONFLICT (instance_id) DO UPDATE SET seq = excluded.seq, hash = excluded.hash
"""
MOVE = "INSERT INTO {0} SELECT * FROM {0}_fresh ORDER BY position"
EMPTY = "DELETE FROM {0}_fresh"
# Places go on where the last row's ended: of the fresh ones, else of those that were moved.
NEXT = "(SELECT 1 + COALESCE((SELECT MAX(position) FROM {0}_fresh), (SELECT MAX(position) FROM {0}), 0))"


def settle(tx: Transaction) -> None:
    """Move all fresh rows to where they are indexed. There are no tables yet if the start was cut short."""
    known = {row["name"] for row in tx.query("SELECT name FROM sqlite_master")}
    for table in TABLES:
        if f"{table}_fresh" in known:
            settle_table(tx, table)


def settle_table(tx: Transaction, table: str) -> None:
    """Move the fresh rows of one table to where they are indexed."""
    if table == "audit_events":
        tx.execute(NOTE_ENDS, {"genesis": GENESIS_HASH})
    if tx.execute(MOVE.format(table)):
        tx.execute(EMPTY.format(table))


def insert_sql(insert: Insert, rows: int, alike: int = 0) -> str:
    """Return the statement that inserts so many rows.

    Its parameters are the values of each row or, when rows have so many sets of columns in common: one for each column
    of these sets, then, column by column, one a row for each of the others.
    """
    if alike:
        places = _column_by_column(insert, rows, alike)
    else:
        places = [["?"] * len(insert.columns)] * rows
    names = ", ".join(insert.columns)
    texts = [", ".join(row) for row in places]
    if not insert.is_fresh:
        values = ", ".join(f"({row})" for row in texts)
        return f"INSERT INTO {insert.table} ({names}) VALUES {values}"  # noqa: S608  # our own names
    values = ", ".join(
        f"({'NULL' if number else NEXT.format(insert.table)}, {row})" for number, row in enumerate(texts)
    )
    return f"INSERT INTO {insert.table}_fresh (position, {names}) VALUES {values}"  # noqa: S608


def alike_places(insert: Insert, alike: int) -> tuple[list[int], list[int]]:
    """Return which columns are in the first so many sets of `insert.alike`, and which are in none of them."""
    shared = frozenset().union(*insert.alike[:alike])
    return (
        [place for place, name in enumerate(insert.columns) if name in shared],
        [place for place, name in enumerate(insert.columns) if name not in shared],
    )


def _column_by_column(insert: Insert, rows: int, alike: int) -> list[list[str]]:
    shared, others = alike_places(insert, alike)
    texts = [[""] * len(insert.columns) for _ in range(rows)]
    numbers = count(1)
    for place in shared:
        text = f"?{next(numbers)}"
        for row in texts:
            row[place] = text
    for place in others:
        for row in texts:
            row[place] = f"?{next(numbers)}"
    return texts
