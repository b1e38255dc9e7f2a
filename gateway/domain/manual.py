"""The documents that travel with the program, by name. `bundle` reads them; nothing here knows HTML."""

from functools import cache

from gateway import bundle
from gateway.errors import NotFound
from gateway.spelling import hint

INDEX = "README.md"
_INSIDE, _BESIDE = "gateway/docs", "docs"  # of an archive or an installed package; of a checkout


@cache
def folder() -> str:
    """Return the folder of the documents, named from the root of the program."""
    return _INSIDE if bundle.names(_INSIDE) else _BESIDE


@cache
def names() -> tuple[str, ...]:
    """Return the names of all pages, such as ``start/quickstart.md``: the index first, then by folder."""
    pages = [name for name in bundle.names(folder()) if name.endswith(".md")]
    return tuple(sorted(pages, key=lambda name: (name != INDEX, name)))


def read(name: str) -> str:
    """Return the text of a page. The ending of its name may be left out.

    Raises:
        NotFound: there is no such page; names the nearest one.
    """
    page = name if name.endswith(".md") else f"{name}.md"
    if page not in names():
        meant = hint(page, names()).replace(".md?", "?")
        raise NotFound(f"There is no page of this name in the documents.{meant} `docs` lists all pages.")
    return bundle.read(f"{folder()}/{page}").decode()
