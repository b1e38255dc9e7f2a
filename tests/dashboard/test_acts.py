"""Whatever the internal API can change, the dashboard can: each such row is asked for by some page. Needs no browser."""

import re

import pytest

from gateway import bundle
from gateway.api.static import FOLDER
from gateway.operations.every import INTERNAL_OPERATIONS

CALLS = {"POST": "(?:post|stream)", "PATCH": "patch", "DELETE": "remove"}
# What `records.js` does for every list of records.
SHARED = {"POST": "keep", "PATCH": "keep", "DELETE": "removal"}
SOURCES = "\n".join(bundle.read(f"{FOLDER}/{name}").decode() for name in bundle.names(FOLDER) if name.endswith(".js"))
CHANGING = [row for row in INTERNAL_OPERATIONS if row.route[0] != "GET"]


@pytest.mark.parametrize("row", CHANGING, ids=lambda row: row.name)
def test_every_act_of_the_internal_api_is_on_some_page(row: object) -> None:
    method, path = row.route  # type: ignore[attr-defined]
    base, _, tail = path.removeprefix("/api/").partition("/{id}")
    if "{id}" in path:
        where = rf'at\("{base}", [^()]*' + (rf'"{tail.strip("/")}"' if tail else "") + r"\)"
    else:
        where = rf'"/api/{base}"'
    shared = rf'|\b{SHARED[method]}\("{base}"' if not tail and method in SHARED else ""
    assert re.search(rf"api\.{CALLS[method]}\({where}{shared}", SOURCES), f"{method} {path}"
