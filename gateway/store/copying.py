"""Copy a database into another one, of whatever engine: table by table, page by page, in the order of the keys.

The target says from its first write to its last whose copy it is. So a copy that was cut short can be repeated, and no
gateway opens a target in which something is missing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from anyio import from_thread

from gateway.errors import SetupError
from gateway.store.database import Row, Shape, Transaction, insert_into
from gateway.store.engine import Database
from gateway.store.meta import COPYING, INSTANCE_ID, MetaRepository
from gateway.store.migrations import schema_number

_PAGE_ROWS = 1000
_LAST = "meta"  # which says whose data it is
_LEFT_OUT = ("schema_migrations", "sign_in_failures")  # what the target has, and what lapses within minutes
_META = MetaRepository()


async def copy_rows(source: Database, target: Database, told: Callable[[str, int], None]) -> Mapping[str, int]:
    """Copy all rows of one state of `source`, and return how many each table has in both.

    told: called with the name and the rows of each table that is copied.

    Raises:
        SetupError: the target holds other data, the schemas differ, or a table has other rows than the source.
        StoreUnavailable: one of them cannot be used now. The copy can be repeated.
    """
    numbers = [await db.read(schema_number) for db in (source, target)]
    if numbers[0] != numbers[1]:
        raise SetupError(f"The schemas differ ({numbers[0]} and {numbers[1]}): start this version on the source once.")
    origin = await source.read(lambda tx: _META.get(tx, INSTANCE_ID) or "")
    await target.write(lambda tx: _begin(tx, origin))
    shapes = sorted(
        (one for one in await target.read(target.shapes) if one.name not in _LEFT_OUT),
        key=lambda one: (one.name == _LAST, one.name),
    )

    def copy(tx: Transaction) -> Mapping[str, int]:
        for shape in shapes:
            from_thread.run(target.change, partial(_empty, shape, origin))  # it may take long
            for page in _pages(tx, shape):
                from_thread.run(target.write, partial(_put, shape, page))
            told(shape.name, _count(tx, shape))
        return {shape.name: _count(tx, shape) for shape in shapes}

    rows = await source.read(copy)
    await target.write(lambda tx: _end(tx, target, shapes, rows))
    return rows


def _begin(tx: Transaction, origin: str) -> None:
    """Check that the target is empty, or has a copy of the same source that was cut short."""
    noted = _META.get(tx, COPYING)
    if noted is None and _META.get(tx, INSTANCE_ID) is not None:
        raise SetupError("The target holds the data of a gateway: name an empty database.")
    if noted not in (None, origin):
        raise SetupError("The target holds a part of another database: name an empty one.")


def _pages(tx: Transaction, shape: Shape) -> Iterator[Sequence[Row]]:
    keys, where, after = ", ".join(shape.key), "", dict[str, object]()
    while True:
        sql = f"SELECT * FROM {shape.name} {where} ORDER BY {keys} LIMIT {_PAGE_ROWS}"  # noqa: S608
        page = tx.query(sql, after)
        yield page
        if len(page) < _PAGE_ROWS:
            return
        where, after = f"WHERE ({keys}) > (:{', :'.join(shape.key)})", {name: page[-1][name] for name in shape.key}


def _empty(shape: Shape, origin: str, tx: Transaction) -> None:
    """Remove what a new schema, or a copy that was cut short, has put into a table."""
    tx.execute(f"DELETE FROM {shape.name}")  # noqa: S608
    _META.set(tx, COPYING, origin)


def _put(shape: Shape, page: Sequence[Row], tx: Transaction) -> None:
    insert = insert_into(shape.name, shape.columns)
    for row in page:
        tx.defer(insert, {name: row[name] for name in shape.columns})


def _end(tx: Transaction, target: Database, shapes: Sequence[Shape], rows: Mapping[str, int]) -> None:
    """Compare the copy with its source, and open it for use."""
    tx.execute("DELETE FROM meta WHERE name = :name", {"name": COPYING})
    for shape in shapes:
        if (have := _count(tx, shape)) != rows[shape.name]:
            raise SetupError(
                f"The table {shape.name} has {rows[shape.name]} rows and its copy {have}: stop every gateway of the "
                "source, then copy into an empty database."
            )
    target.settle_positions(tx)


def _count(tx: Transaction, shape: Shape) -> int:
    return int(tx.query(f"SELECT COUNT(*) AS count FROM {shape.name}")[0]["count"])  # noqa: S608
