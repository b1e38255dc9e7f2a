"""Serve the documents at /docs as HTML. They hold nothing private, so everybody may read them."""

import html
from functools import cache

from gateway import bundle
from gateway.api.static import GUARDS
from gateway.domain import manual, markdown
from gateway.domain.principals import Principal, RequestContext
from gateway.http.messages import Request, Response

ROOT = "/docs/"
_STYLE = "style.css"
_STYLE_FILE = "gateway/api/manual.css"
_MINUTES = ("cache-control", "public, max-age=300")


async def page(request: Request, who: Principal, context: RequestContext, command: None) -> Response:
    """Return a page, the list of pages, or the style of both.

    Raises:
        NotFound: there is no such page.
    """
    if request.path == ROOT.rstrip("/"):
        return Response(308, (("location", ROOT),))
    name = request.path.removeprefix(ROOT) or manual.INDEX
    if name == _STYLE:
        return Response(200, (("content-type", "text/css; charset=utf-8"), _MINUTES, *GUARDS), bundle.read(_STYLE_FILE))
    headers = (("content-type", "text/html; charset=utf-8"), _MINUTES, *GUARDS)
    return Response(200, headers, _page(name))


@cache
def _page(name: str) -> bytes:
    text = manual.read(name)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{html.escape(markdown.title(text))}</title><link rel="stylesheet" href="{ROOT}{_STYLE}"></head>'
        f'<body><nav><a href="{ROOT}">All pages</a> <a href="/">Dashboard</a></nav>'
        f"<main>{markdown.render(text)}</main></body></html>"
    ).encode()
