"""Serve the files of the dashboard, and at /docs the documents as HTML, which everybody may read.

The dashboard's files are read from the archive at the start; no path of a request reaches the disk. Every file except
the page is served under a folder named by the hash of all files. So a browser may cache it for ever and never mixes two
versions. The page names that folder, and browsers ask for the page again each time.
"""

import hashlib
import html
from collections.abc import Mapping
from functools import cache

from gateway import bundle
from gateway.domain import manual, markdown
from gateway.domain.principals import Caller
from gateway.http.messages import HttpError, Request, Response
from gateway.responses import Headers

FOLDER = "gateway/dashboard"
PAGE = "index.html"
VERSION_MARK = b"@VERSION@"
TYPES: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # In browsers with Trusted Types, turning text into markup throws.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
MANUAL = "/docs/"
_STYLE = "style.css"
_STYLE_FILE = "gateway/api/manual.css"
_MINUTES = ("cache-control", "public, max-age=300")
_ASK_AGAIN = "no-cache"
_KEEP = "public, max-age=31536000, immutable"
GUARDS = (
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-frame-options", "DENY"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)


class StaticEdge:
    """Answers the requests for the dashboard."""

    def __init__(self) -> None:
        raw = {name: bundle.read(f"{FOLDER}/{name}") for name in bundle.names(FOLDER)}
        whole = hashlib.sha256()
        for name in sorted(raw):
            whole.update(b"%d %s %d " % (len(name), name.encode(), len(raw[name])) + raw[name])
        self._version = whole.hexdigest()[:16]
        raw[PAGE] = raw[PAGE].replace(VERSION_MARK, self._version.encode())
        self._files = {name: (_headers(name, data), data) for name, data in raw.items()}

    async def page(self, request: Request, caller: Caller, command: None) -> Response:
        """Return the page, or 304 to a browser that has it."""
        return _fresh(request, *self._files[PAGE])

    async def file(self, request: Request, caller: Caller, command: None) -> Response:
        """Return a file of this version.

        Raises:
            HttpError: 404, the dashboard has no such file, or the path names another version.
        """
        _, _, version, name = request.path.split("/", 3)
        if version != self._version or name == PAGE or name not in self._files:
            raise HttpError(404, "not_found", "The dashboard has no such file now; load the page again.")
        return _fresh(request, *self._files[name])


def _headers(name: str, data: bytes) -> Headers:
    return (
        ("content-type", TYPES[name.rpartition(".")[2]]),
        ("cache-control", _ASK_AGAIN if name == PAGE else _KEEP),
        ("etag", f'"{hashlib.sha256(data).hexdigest()[:32]}"'),
        *GUARDS,
    )


def _fresh(request: Request, headers: Headers, data: bytes) -> Response:
    """Return the file, or 304 when the browser has just that (RFC 9110 section 13.1.2)."""
    known, etag = (request.headers.get("if-none-match") or "").split(","), dict(headers)["etag"]
    if any(one.strip().removeprefix("W/") in (etag, "*") for one in known):
        return Response(304, tuple(pair for pair in headers if pair[0] != "content-type"))
    return Response(200, headers, data)


async def manual_page(request: Request, caller: Caller, command: None) -> Response:
    """Return a page, the list of pages, or the style of both.

    Raises:
        NotFound: there is no such page.
    """
    if request.path == MANUAL.rstrip("/"):
        return Response(308, (("location", MANUAL),))
    name = request.path.removeprefix(MANUAL) or manual.INDEX
    if name == _STYLE:
        return Response(200, (("content-type", "text/css; charset=utf-8"), _MINUTES, *GUARDS), bundle.read(_STYLE_FILE))
    headers = (("content-type", "text/html; charset=utf-8"), _MINUTES, *GUARDS)
    return Response(200, headers, _manual_page(name))


@cache
def _manual_page(name: str) -> bytes:
    text = manual.read(name)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{html.escape(markdown.title(text))}</title><link rel="stylesheet" href="{MANUAL}{_STYLE}"></head>'
        f'<body><nav><a href="{MANUAL}">All pages</a> <a href="/">Dashboard</a></nav>'
        f"<main>{markdown.render(text)}</main></body></html>"
    ).encode()
