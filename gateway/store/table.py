"""Map a frozen record to its table: columns, statements, rows and pages from one declaration.

A repository is a `Table` or holds one. The table takes its columns from the fields of the record and builds its SQL
from their names when it is made, so a new field needs no new statement. Values are always named parameters. The type
of a field selects how its column is stored: an enum by its value, a boolean as 0 or 1, tuples and mappings as JSON.
A repository gives a `Codec` where the type does not say enough, and keeps its special statements by hand.

A table that decides what a principal may do is an `AuthorityTable`. It writes through `AuthorityTransaction.change`
alone, so that every process reads authority again after the commit. `tests/house/test_authority.py` lists these tables.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from operator import attrgetter
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from gateway.domain.paging import MAX_INTEGER, MOST_COUNTED, Page, PageQuery, read_cursor, write_cursor
from gateway.schema import decode, encode
from gateway.store.authority import AuthorityTransaction
from gateway.store.database import Row, Transaction, insert_into
from gateway.store.filters import Where, check_limit
from gateway.strict_json import json_text

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Codec:
    """How the values of one field are stored. write: from the field to the column. read: back."""

    write: Callable[[Any], object]
    read: Callable[[Any], object]


def optional(codec: Codec) -> Codec:
    """Return `codec` for a field that may be None, which is stored as NULL."""
    return Codec(
        lambda value: None if value is None else codec.write(value),
        lambda value: None if value is None else codec.read(value),
    )


def json_records(cls: type) -> Codec:
    """Return the codec of a tuple of records, stored as a JSON array of objects."""
    return Codec(
        lambda records: json_text([encode(one) for one in records]),
        lambda text: tuple(decode(cls, one) for one in json.loads(text)),
    )


class TableReader(Generic[R]):
    """The mapper of a table: what anybody may read, and the statements of those that write.

    key: the column that identifies a row. columns: names of columns that differ from their field's, None for a field
    that has no column. extra: columns without a field, whose values are given on every write. changes: the fields
    that `change` writes, by default all but the key and who made the record when. raises_version: whether `change`
    raises the version; otherwise it writes that of the record.
    order: the columns by which pages are sorted, newest first; by default the key. sorts: by its name, what a page can
    be sorted by instead: an expression that is never NULL. Rows alike in it stand in the order of the table.
    page_limit: the most rows of a page. kept: how many of the newest rows an insert leaves.
    """

    def __init__(
        self,
        name: str,
        record: type[R],
        *,
        key: str = "id",
        columns: Mapping[str, str | None] | None = None,
        codecs: Mapping[str, Codec] | None = None,
        extra: Sequence[str] = (),
        changes: Sequence[str] = (),
        raises_version: bool = True,
        order: Sequence[str] = (),
        sorts: Mapping[str, str] | None = None,
        page_limit: int = 100,
        kept: int = 0,
    ) -> None:
        renamed, hints, order = columns or {}, get_type_hints(record), order or (key,)
        self.name, self._record, self._key, self._order = name, record, key, order
        self._page_limit, self._kept, self._sorts = page_limit, kept, sorts or {}
        self._columns = {
            one.name: renamed.get(one.name) or one.name
            for one in fields(record)  # type: ignore[arg-type]  # every record is a dataclass
            if renamed.get(one.name, "") is not None
        }
        derived = {field: _codec(hints[field]) for field in self._columns} | dict(codecs or {})
        self._codecs = {field: codec for field, codec in derived.items() if codec is not None}
        self.columns = tuple(self._columns.values())
        self.names = ", ".join(self.columns)
        self._get = attrgetter(*self._columns)
        written = (*self.columns, *extra)
        fixed = {key, "created_at", "created_by"} | ({"version"} if raises_version else set())
        changed = (*(self._columns[field] for field in changes or self._columns if field not in fixed), *extra)
        sets = [f"{column} = :{column}" for column in changed]
        if raises_version and "version" in self.columns:
            sets.append("version = version + 1")
        self._insert_sql = insert_into(name, written)
        self._put_sql = insert_into(name, self.columns, key=(key,))
        self._update_sql = f"UPDATE {name} SET {', '.join(sets)} WHERE {key} = :{key}"  # noqa: S608
        self._delete_sql = f"DELETE FROM {name} WHERE {key} = :{key}"  # noqa: S608
        self._prune_sql = f"""
            DELETE FROM {name} WHERE {key} IN (SELECT {key} FROM {name} ORDER BY {key} DESC LIMIT 100 OFFSET :kept)
        """  # noqa: S608
        self._of_key = f"WHERE {key} = :{key}"

    def select(self, rest: str = "") -> str:
        """Return the statement that reads whole records. rest: what follows its FROM."""
        return f"SELECT {self.names} FROM {self.name} {rest}"  # noqa: S608  # our own names

    def params(self, record: R) -> dict[str, object]:
        """Return a record as the parameters of a statement, by the names of the columns."""
        params = dict(zip(self.columns, self._get(record), strict=True))
        for field, codec in self._codecs.items():
            params[self._columns[field]] = codec.write(params[self._columns[field]])
        return params

    def record(self, row: Row, **others: object) -> R:
        """Make the record of a row. others: the fields that have no column."""
        values = {field: row[column] for field, column in self._columns.items()}
        for field, codec in self._codecs.items():
            values[field] = codec.read(values[field])
        return self._record(**values, **others)

    def one(self, tx: Transaction, rest: str, **params: object) -> R | None:
        """Return the first record that is found. rest: what follows the FROM."""
        rows = tx.query(self.select(rest), params)
        return self.record(rows[0]) if rows else None

    def many(self, tx: Transaction, rest: str, **params: object) -> tuple[R, ...]:
        """Return all records that are found. rest: what follows the FROM."""
        return tuple(self.record(row) for row in tx.query(self.select(rest), params))

    def by_id(self, tx: Transaction, key: str) -> R | None:
        return self.one(tx, self._of_key, **{self._key: key})

    def find(self, tx: Transaction, id_or_name: str) -> R | None:
        """Return the record of this id or, in a table with names, of this name, whatever its case."""
        found = self.by_id(tx, id_or_name)
        if found is None and "name" in self.columns and id_or_name.isascii():
            found = self.one(tx, "WHERE lower(name) = :folded", folded=id_or_name.lower())
        return found

    def all(self, tx: Transaction) -> tuple[R, ...]:
        """Return all records in the order of their keys."""
        return self.many(tx, f"ORDER BY {self._key}")

    def count(self, tx: Transaction, condition: str = "", *, most: int = MAX_INTEGER, **params: object) -> int:
        """Count the rows, and stop at `most`. condition: a WHERE clause."""
        sql = f"SELECT COUNT(*) AS count FROM (SELECT 1 FROM {self.name} {condition} LIMIT :most) AS found"  # noqa: S608
        return int(tx.query(sql, params | {"most": most})[0]["count"])

    def _where(self, wanted: Any) -> Where:
        """Return the conditions of a filter. A repository whose pages have filters overrides this."""
        return Where()

    def page(
        self, tx: Transaction, wanted: PageQuery, where: Where | None = None, sorts: Mapping[str, str] | None = None
    ) -> Page[R]:
        """Return a part of the records that a filter matches, sorted as it says.

        where, sorts: in place of the conditions of the filter and the sorts of the table.

        Raises:
            InvalidRequest: the limit, a filter out of bounds, or a cursor of another list.
        """
        where, limit = where or self._where(wanted), check_limit(wanted.limit, self._page_limit)
        matching, params = where.sql(), dict(where.params)
        keys = tuple(dict.fromkeys((*wanted.sort_of(sorts or self._sorts), *self._order)))
        query = (self.name, *_filters(wanted))
        if wanted.cursor is not None:
            kinds = [str if key == "id" else int if key in self._order else int | str for key in keys]
            last = read_cursor(wanted.cursor, query, kinds)
            after = {f"after_{number}": value for number, value in enumerate(last)}
            is_after = "<" if wanted.is_highest_first else ">"
            where.add(f"({', '.join(keys)}) {is_after} (:{', :'.join(after)})", **after)
        selected = ", ".join((*(f"{key} AS key_{number}" for number, key in enumerate(keys)), self.names))
        order = ", ".join(f"{key} DESC" if wanted.is_highest_first else key for key in keys)
        sql = f"SELECT {selected} FROM {self.name}{where.sql()} ORDER BY {order} LIMIT :limit"  # noqa: S608
        rows = tx.query(sql, where.params | {"limit": limit + 1})
        items = tuple(self.record(row) for row in rows[:limit])
        if wanted.cursor is None and len(rows) <= limit:
            return Page(items, limit, None, len(items))
        total = self.count(tx, matching, most=MOST_COUNTED + 1, **params)
        position = [rows[limit - 1][f"key_{number}"] for number in range(len(keys))] if len(rows) > limit else None
        following = write_cursor(query, position) if position else None
        return Page(items, limit, following, total if total <= MOST_COUNTED else None)


class Table(TableReader[R]):
    """A table that any transaction may write."""

    @property
    def update_sql(self) -> str:
        return self._update_sql

    def insert(self, tx: Transaction, record: R, **extra: object) -> None:
        """Insert a record. The write fails with `Conflict` if a unique column has its value already."""
        tx.defer(self._insert_sql, self.params(record) | extra)
        if self._kept:
            tx.execute(self._prune_sql, {"kept": self._kept})

    def insert_new(self, tx: Transaction, record: R) -> bool:
        """Insert a record, unless a unique column has its value already, and return whether it was inserted."""
        return tx.execute(f"{self._insert_sql} ON CONFLICT DO NOTHING", self.params(record)) == 1

    def put(self, tx: Transaction, record: R) -> None:
        """Insert a record, or write it in place of the one with its key."""
        tx.execute(self._put_sql, self.params(record))

    def change(self, tx: Transaction, record: R, **extra: object) -> bool:
        """Write the changes of a record and return whether its row exists."""
        return tx.execute(self._update_sql, self.params(record) | extra) == 1

    def remove(self, tx: Transaction, key: str) -> bool:
        return tx.execute(self._delete_sql, {self._key: key}) == 1


class PositionedTable(Table[R]):
    """A table whose `position` rises with each insert."""

    def after(
        self, tx: Transaction, position: int, wanted: PageQuery | None = None, *, limit: int
    ) -> tuple[tuple[int, R], ...]:
        """Return the records after a position that a filter matches, oldest first, each with its position."""
        where = self._where(wanted) if wanted else Where()
        where.add("position > :position", position=position)
        sql = f"SELECT position, {self.names} FROM {self.name}{where.sql()} ORDER BY position LIMIT :limit"  # noqa: S608
        rows = tx.query(sql, where.params | {"limit": limit})
        return tuple((int(row["position"]), self.record(row)) for row in rows)

    def newest_position(self, tx: Transaction) -> int:
        """Return the position of the newest record, 0 when there is none."""
        rows = tx.query(f"SELECT position FROM {self.name} ORDER BY position DESC LIMIT 1")  # noqa: S608
        return int(rows[0]["position"]) if rows else 0


class AuthorityTable(TableReader[R]):
    """A table that says who may do what, with the methods of `Table`.

    A committed change holds in every process from its next request on.
    """

    def insert(self, tx: AuthorityTransaction, record: R, **extra: object) -> None:
        tx.change(self._insert_sql, self.params(record) | extra)

    def put(self, tx: AuthorityTransaction, record: R) -> None:
        tx.change(self._put_sql, self.params(record))

    def change(self, tx: AuthorityTransaction, record: R, **extra: object) -> bool:
        return tx.change(self._update_sql, self.params(record) | extra) == 1

    def remove(self, tx: AuthorityTransaction, key: str) -> bool:
        return tx.change(self._delete_sql, {self._key: key}) == 1


def _filters(wanted: PageQuery) -> list[object]:
    """Return the filters, which name the list of a cursor. Times count by presence only: an age such as 24h moves."""
    filters = {one.name: getattr(wanted, one.name) for one in fields(wanted) if one.name not in ("limit", "cursor")}
    return [value is None if name in ("since", "until") else value for name, value in filters.items()]


def _codec(hint: Any) -> Codec | None:
    """Return how values of a type are stored, or None where the database holds them as they are."""
    options = get_args(hint)
    if NoneType in options:
        (inner,) = (_codec(one) for one in options if one is not NoneType)
        return optional(inner) if inner is not None else None
    if hint is bool:
        return Codec(int, bool)
    if _is_enum(hint):
        return Codec(attrgetter("value"), hint)
    if get_origin(hint) is tuple:
        make: Any = options[0] if _is_enum(options[0]) else lambda item: item
        return Codec(json_text, lambda text: tuple(map(make, json.loads(text))))
    if isinstance(origin := get_origin(hint), type) and issubclass(origin, Mapping):
        return Codec(lambda value: json_text(dict(value)), json.loads)
    return None


def _is_enum(hint: object) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)
