"""Copy a database into another one, of whatever engine: table by table, page by page, in the order of the keys.

How far a copy is stands in the target, written with each page. So a copy that was cut short goes on where it ended, and
no gateway opens a target in which something is missing.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

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


@dataclass(frozen=True, slots=True)
class Place:
    """How far a copy is. origin: the id of the source. after: the key of the last row that the target has."""

    origin: str
    table: str | None = None
    after: Sequence[object] | None = None


async def copy_rows(source: Database, target: Database, told: Callable[[str, int], None]) -> Mapping[str, int]:
    """Copy all rows of one state of `source`, and return how many each table has in both.

    told: called with the name and the rows of each table that is copied.

    Raises:
        SetupError: the target holds other data, the schemas differ, or a table has other rows than the source.
        StoreUnavailable: one of them cannot be used now. The next copy goes on where this one ended.
    """
    numbers = [await db.read(schema_number) for db in (source, target)]
    if numbers[0] != numbers[1]:
        raise SetupError(f"The schemas differ ({numbers[0]} and {numbers[1]}): start this version on the source once.")
    origin = await source.read(lambda tx: _META.get(tx, INSTANCE_ID) or "")
    begun = await target.write(lambda tx: _begin(tx, origin))
    shapes = sorted(
        (one for one in await target.read(target.shapes) if one.name not in _LEFT_OUT),
        key=lambda one: (one.name == _LAST, one.name),
    )

    def copy(tx: Transaction) -> Mapping[str, int]:
        names = [one.name for one in shapes]
        for shape in shapes[names.index(begun.table) if begun.table else 0 :]:
            for page, after in _pages(tx, shape, begun.after if shape.name == begun.table else None):
                from_thread.run(target.write, _put(shape, page, after, origin))
            told(shape.name, _count(tx, shape))
        return {shape.name: _count(tx, shape) for shape in shapes}

    rows = await source.read(copy)
    await target.write(lambda tx: _end(tx, target, shapes, rows))
    return rows


def _begin(tx: Transaction, origin: str) -> Place:
    """Return how far a copy of the same source has come, or begin one."""
    if (noted := _META.get(tx, COPYING)) is None:
        if _META.get(tx, INSTANCE_ID) is not None:
            raise SetupError("The target holds the data of a gateway: name an empty database.")
        return Place(origin)
    place = Place(**json.loads(noted))
    if place.origin != origin:
        raise SetupError("The target holds a part of another database: name an empty one.")
    return place


def _pages(
    tx: Transaction, shape: Shape, after: Sequence[object] | None
) -> Iterator[tuple[Sequence[Row], Sequence[object] | None]]:
    """Return the pages of a table, each with the key of the row before it, None for the first one."""
    keys = shape.key
    while True:
        where = f"WHERE ({', '.join(keys)}) > (:{', :'.join(keys)})" if after is not None else ""
        sql = f"SELECT * FROM {shape.name} {where} ORDER BY {', '.join(keys)} LIMIT {_PAGE_ROWS}"  # noqa: S608
        page = tx.query(sql, dict(zip(keys, after or (), strict=False)))
        yield page, after
        if len(page) < _PAGE_ROWS:
            return
        after = [page[-1][name] for name in keys]


def _put(
    shape: Shape, page: Sequence[Row], after: Sequence[object] | None, origin: str
) -> Callable[[Transaction], None]:
    """Return the write of a page and of how far the copy is then."""
    insert = insert_into(shape.name, shape.columns)

    def work(tx: Transaction) -> None:
        if after is None:  # a new schema has rows of its own in some tables
            tx.execute(f"DELETE FROM {shape.name}")  # noqa: S608
        for row in page:
            tx.defer(insert, {name: row[name] for name in shape.columns})
        last = [page[-1][name] for name in shape.key] if page else after
        _META.set(tx, COPYING, json.dumps(asdict(Place(origin, shape.name, last))))

    return work


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
