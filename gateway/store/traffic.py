"""Every SQL statement about traffic rows."""

import json
from dataclasses import fields
from operator import attrgetter

from gateway.domain.traffic import TrafficRow
from gateway.store.database import Insert, Transaction

_COLUMNS = tuple(field.name for field in fields(TrafficRow))
_DETECTIONS = _COLUMNS.index("detections")
ROWS = Insert("traffic", _COLUMNS)


class TrafficRepository:
    """The table of requests."""

    def insert(self, tx: Transaction, row: TrafficRow) -> None:
        """Insert a row, before the commit, together with others."""
        values = list(_VALUES(row))
        values[_DETECTIONS] = json.dumps(row.detections, ensure_ascii=False, separators=(",", ":"))
        tx.add(ROWS, tuple(values))


_VALUES = attrgetter(*_COLUMNS)
