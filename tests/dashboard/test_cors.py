"""A page of another origin in a real browser: what it may ask of the gateway, and what it may read."""

import http.server
import json
import threading
from collections.abc import Iterator

import pytest
from dashboard.browser import Browser, Page
from dashboard.site import quoted, serve
from running import Served


class _Blank(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>App</title><h1>App</h1>")

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def app() -> Iterator[str]:
    """The origin of a page that is not the gateway's."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Blank)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def served(app: str) -> Iterator[Served]:
    """A gateway that names this page."""
    one = serve(":memory:", rbac="false", GATEWAY_CORS_ORIGINS=app)
    made = one.ask("POST", "/api/config/api-keys", {"name": "page", "scopes": ["chat:completions"]}, key=None)
    one.key = made.json["data"]["key"]
    yield one
    assert one.process.stop() == 0


def fetched(page: Page, url: str, **options: object) -> dict:
    """Return what a script of the page gets of a `fetch`: status, a header and the body, or that it failed."""
    script = (
        f"fetch({quoted(url)}, {json.dumps(options)}).then(async a => ({{status: a.status, id: a.headers.get('x-request-id'),"
        " rate: a.headers.get('x-ratelimit-remaining-requests'), body: await a.text()}), () => ({status: 0}))"
    )
    return page.run(script)


def test_a_named_page_chats_and_reads_refusals_and_no_other_does(browser: Browser, served: Served, app: str) -> None:
    page = browser.page()
    chat = f"{served.url}/api/v1/chat/completions"
    headers = {
        "Authorization": f"Bearer {served.key}", "Content-Type": "application/json", "X-Stainless-Lang": "js",
        "X-Stainless-Retry-Count": "0",
    }  # fmt: skip
    body = json.dumps({"model": "echo", "messages": [{"role": "user", "content": "Hello"}]})
    try:
        page.goto(f"{app}/")
        page.wait("document.querySelector('h1')")
        good = fetched(page, chat, method="POST", headers=headers, body=body)
        assert good["status"] == 200, good
        assert good["id"].startswith("req_")
        assert good["rate"] is not None
        wrong = fetched(page, chat, method="POST", headers={**headers, "Authorization": "Bearer svc_wrong"}, body=body)
        assert wrong["status"] == 401
        assert json.loads(wrong["body"])["error"]["code"] == "invalid_api_key"
        long = fetched(page, f"{served.url}/api/v1/shield/scan", method="POST", headers=headers, body="x" * 5_000_000)
        assert long["status"] in (0, 413)  # a browser that is still sending may not look at the answer
        assert long["status"] == 0 or "max_scan_body_bytes" in long["body"]
        for path in ("/api/config/api-keys", "/api/auth/session", "/metrics"):
            assert fetched(page, served.url + path)["status"] == 0, path
        page.goto(f"{app.replace('127.0.0.1', 'localhost')}/")
        page.wait("location.hostname === 'localhost' && document.querySelector('h1')")
        assert fetched(page, chat, method="POST", headers=headers, body=body)["status"] == 0
    finally:
        page.close()
