"""Markdown to HTML: the part of it that the documents use. Pure.

Blocks are headings, paragraphs, lists, tables, fences and comments. Within a line there are code, bold, links, and line
breaks. Everything else is text, and all text is escaped, so that a page can hold no markup of its own.
"""

import html
import re
from collections.abc import Callable, Iterator

_FENCE = re.compile(r"```(\w*).*")
_HEADING = re.compile(r"(#{1,6}) (.*)")
_MARKER = re.compile(r"(?:[-*]|\d+\.) +")
_RULE = re.compile(r"\|(?: *:?-+:? *\|)+")
_CELL = re.compile(r"(?<!\\)\|")
# An address of the web or a path in the documents; nothing with another scheme.
_TARGET = re.compile(r"https?://.+|[\w./#-]+")
_INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\*\*(?P<bold>.+?)\*\*|(?P<image>!)?\[(?P<text>(?:[^\]`]|`[^`]*`)*)\]\((?P<target>[^)\s]+)\)"
    r"|<(?P<address>https?://[^>\s]+)>|(?P<line><br>)"
)


def render(text: str) -> str:
    """Return the HTML of a page."""
    return "\n".join(_blocks(re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).splitlines()))


def title(text: str) -> str:
    """Return the first heading of a page as plain text; "" if there is none."""
    found = re.search(r"^# (.*)$", text, re.MULTILINE)
    return found[1].replace("`", "").strip() if found else ""


def anchor(heading: str) -> str:
    """Return the name under which a link reaches a heading, as GitHub forms it."""
    return re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).strip().replace(" ", "-")


def _blocks(lines: list[str]) -> Iterator[str]:
    at = 0

    def take(wanted: Callable[[str], object]) -> list[str]:
        nonlocal at
        start = at
        while at < len(lines) and wanted(lines[at]):
            at += 1
        return lines[start:at]

    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif _FENCE.fullmatch(line):
            at += 1
            body = take(lambda one: one.rstrip() != "```")
            at += 1
            yield f"<pre><code>{html.escape(chr(10).join(body))}</code></pre>"
        elif found := _HEADING.fullmatch(line):
            at += 1
            level = len(found[1])
            yield f'<h{level} id="{html.escape(anchor(found[2]))}">{_inline(found[2])}</h{level}>'
        elif line.startswith("|"):
            yield _table(take(lambda one: one.startswith("|")))
        elif _MARKER.match(line):
            # A list goes on behind a blank line if what follows is indented or is a further item.
            start = at
            at += 1
            while at < len(lines) and (lines[at].strip() or _goes_on(lines, at)):
                at += 1
            yield _list(lines[start:at])
        else:
            at += 1
            rest = take(lambda one: one.strip() and not one.startswith(("|", "```", "#", "- ")))
            yield f"<p>{_inline(' '.join(part.strip() for part in (line, *rest)))}</p>"


def _goes_on(lines: list[str], at: int) -> bool:
    following = next((one for one in lines[at:] if one.strip()), "")
    return following.startswith("  ") or bool(_MARKER.match(following))


def _list(lines: list[str]) -> str:
    items: list[list[str]] = []
    for line in lines:
        if found := _MARKER.match(line):
            width = found.end()
            items.append([line[width:]])
        else:
            items[-1].append(line[width:] if not line[:width].strip() else line.strip())
    kind = "ul" if lines[0][0] in "-*" else "ol"
    return f"<{kind}>{''.join(f'<li>{_item(item)}</li>' for item in items)}</{kind}>"


def _item(lines: list[str]) -> str:
    blocks = list(_blocks(lines))
    if blocks and blocks[0].startswith("<p>"):
        blocks[0] = blocks[0].removeprefix("<p>").removesuffix("</p>")
    return "\n".join(blocks)


def _table(lines: list[str]) -> str:
    rows = [[cell.strip().replace("\\|", "|") for cell in _CELL.split(line.strip())[1:-1]] for line in lines]
    has_head = len(lines) > 1 and _RULE.fullmatch(lines[1].strip())
    head = f"<thead>{_row(rows[0], 'th')}</thead>" if has_head else ""
    body = "".join(_row(row, "td") for row in (rows[2:] if has_head else rows))
    return f"<table>{head}<tbody>{body}</tbody></table>"


def _row(cells: list[str], kind: str) -> str:
    return "<tr>" + "".join(f"<{kind}>{_inline(cell)}</{kind}>" for cell in cells) + "</tr>"


def _inline(text: str) -> str:
    parts, end = [], 0
    for found in _INLINE.finditer(text):
        parts += [html.escape(text[end : found.start()]), _span(found)]
        end = found.end()
    return "".join([*parts, html.escape(text[end:])])


def _span(found: re.Match[str]) -> str:
    if found["code"] is not None:
        return f"<code>{html.escape(found['code'])}</code>"
    if found["bold"] is not None:
        return f"<strong>{_inline(found['bold'])}</strong>"
    if found["line"] is not None:
        return "<br>"
    if found["image"] is not None:
        return ""  # the documents are served without pictures
    target = found["address"] or found["target"]
    text = html.escape(target) if found["address"] else _inline(found["text"])
    return f'<a href="{html.escape(target)}">{text}</a>' if _TARGET.fullmatch(target) else html.escape(found[0])
