"""Markdown to HTML for the documents. Pure. mistune escapes all markup that a page holds itself."""

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

# An address of the web or a path in the documents; nothing with another scheme, and no host without one.
_TARGET = re.compile(r"https?://.+|(?!//)[\w./#-]+")


def render(text: str) -> str:
    """Return the HTML of a page, without its comments and pictures. A link that leads elsewhere is shown as text."""
    return str(_markdown()(re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)))


def title(text: str) -> str:
    """Return the first heading of a page as plain text; "" if there is none."""
    found = re.search(r"^# (.*)$", text, re.MULTILINE)
    return found[1].replace("`", "").strip() if found else ""


def anchor(heading: str) -> str:
    """Return the name under which a link reaches a heading, as GitHub forms it."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")


@cache
def _markdown() -> Callable[[str], object]:
    import mistune  # only here, so that a command that shows no page does not pay for it

    class Page(mistune.HTMLRenderer):
        def link(self, text: str, url: str, title: str | None = None) -> str:
            return super().link(text, url) if _TARGET.fullmatch(url) else f"[{text}]({mistune.escape(url)})"

        def image(self, text: str, url: str, title: str | None = None) -> str:
            return ""

        def inline_html(self, html: str) -> str:
            return html if html == "<br>" else super().inline_html(html)

    page = mistune.create_markdown(renderer=Page(), plugins=["table"])
    page.before_render_hooks.append(lambda _, state: _prepare(state.tokens))
    return page


def _prepare(tokens: Iterable[dict[str, Any]]) -> None:
    for token in tokens:
        if token["type"] == "heading":
            token["attrs"]["id"] = anchor(token["text"])
        elif token["type"] == "table_cell":
            token["text"] = token["text"].replace("\\|", "|")  # in code as well, where mistune keeps the backslash
            token["attrs"]["align"] = None  # browsers would refuse its inline style
        _prepare(token.get("children", ()))
