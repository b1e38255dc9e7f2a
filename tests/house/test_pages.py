"""The pages under docs/: each is in the index, every link leads somewhere, and no sentence is hard to read."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
# Words, of which a sentence has at most so many. A table cell and a list item end a sentence as a full stop does.
LONGEST_SENTENCE = 30
FENCE = re.compile(r"^ *```.*?^ *```$|^ {4}\S.*?$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.replace("`", "").lower()).replace(" ", "-") for head in heads}


def sentences(text: str) -> list[str]:
    """Return the sentences of a page: without code blocks, and with code and link targets as one word."""
    text = re.sub(r"<!-- (\w[\w ]*) -->.*?<!-- end -->", "", FENCE.sub("\n\n", text), flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", text))
    blocks = re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) |^#+ .*$|\||<br>", text, flags=re.MULTILINE)
    return [one for block in blocks for one in re.split(r"(?<=[.?!])\**\s+", " ".join(block.split()))]


def test_the_index_names_every_page() -> None:
    index = (DOCS / "README.md").read_text("utf-8")
    assert [name(page) for page in PAGES if f"({name(page)})" not in index and page.name != "README.md"] == []


def test_the_dashboard_links_pages_that_exist() -> None:
    text = (DOCS.parent / "gateway" / "dashboard" / "pages" / "help.js").read_text("utf-8")
    linked = re.findall(r'"((?:[a-z-]+/)?[a-z-]+)"[,\] ]', text.partition("const KEYS")[0])
    assert len(linked) > 12
    assert [one for one in linked if "/" in one and not (DOCS / f"{one}.md").is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_of_a_page_leads_to_a_page_and_its_heading(page: Path) -> None:
    # Pages are also served at /docs, so a link must not leave the folder.
    for target in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if target.startswith(("https://", "http://")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.is_file() and there.is_relative_to(DOCS), target
        assert not anchor or anchor in anchors(there), target


@pytest.mark.parametrize("page", [*PAGES, DOCS.parent / "README.md"], ids=lambda page: page.as_posix()[-30:])
def test_no_sentence_of_a_page_is_long(page: Path) -> None:
    text = page.read_text("utf-8")
    long = [one for one in sentences(text) if len(re.findall(r"[^\W_]\S*", one)) > LONGEST_SENTENCE]
    assert long == []
