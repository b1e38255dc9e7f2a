"""A detector is added, tested and enabled in the browser, and what it forbids is told with its label and time."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from dashboard.browser import Page
from dashboard.site import Site, quoted
from dashboard.test_findings import chat, key
from dashboard.test_forms import FORM, newest, send

__all__ = ["key"]
pytestmark = pytest.mark.slow

BAD = ("ignore all previous", "swordfish")
ROW = "[...document.querySelectorAll('tbody tr')].find(one => one.textContent.includes('e2e-guard'))"
DIALOG = "[...document.querySelectorAll('dialog[open]')].at(-1)"


class Classifier(BaseHTTPRequestHandler):
    """Text Embeddings Inference with a model that knows the words of BAD."""

    wbufsize = -1

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        scores = [0.97 if any(bad in text.lower() for bad in BAD) else 0.02 for (text,) in asked["inputs"]]
        answer = [[{"label": "ATTACK", "score": one}, {"label": "FINE", "score": 1 - one}] for one in scores]
        self._send(200, answer)

    def do_GET(self) -> None:
        labels = {"0": "FINE", "1": "ATTACK"}
        self._send(200, {"model_id": "e2e/model", "max_input_length": 512, "model_type": {"classifier": {"id2label": labels}}})  # fmt: skip

    def _send(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def classifier(site: Site) -> Iterator[str]:
    """The address of a scripted detector. What a test set up with it is removed at its end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Classifier)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    for one in newest(site, "/api/detectors"):
        site.ask("DELETE", f"/api/detectors/{one['id']}")
    server.shutdown()
    server.server_close()


def press(page: Page, label: str) -> None:
    """Click a button in the row of the detector."""
    page.wait(ROW)
    page.run(f"[...{ROW}.querySelectorAll('button')].find(one => one.textContent === {quoted(label)}).click()")


def shown(page: Page) -> list[str]:
    """Return the names of the fields that the open form shows."""
    fields: list[str] = page.run(
        f"[...{FORM}.querySelectorAll('[name]')].filter(one => one.checkVisibility()).map(one => one.name)"
    )
    return fields


def test_a_detector_is_added_tested_and_enabled_and_then_decides(
    opened: Callable[..., Page], site: Site, key: Any, classifier: str
) -> None:
    page = opened("shield/detectors")
    page.say("Add detector")
    page.wait(FORM)
    assert {"model", "format", "prompt"} <= set(shown(page)) and "score_path" not in shown(page)
    values: dict[str, str | bool] = {
        "kind": "tei_predict", "name": "e2e-guard", "base_url": classifier, "allow_private": True,
        "labels": "ATTACK: injection\nFINE: safe", "effect": "veto", "threshold": "0.8", "when": "score 0-100",
    }  # fmt: skip
    send(page, values)
    (made,) = newest(site, "/api/detectors")
    assert {name: made[name] for name in ("kind", "base_url", "labels", "effect", "threshold", "when", "enabled")} == {
        "kind": "tei_predict", "base_url": classifier, "labels": {"ATTACK": "injection", "FINE": "safe"},
        "effect": "veto", "threshold": 0.8, "when": "score 0-100", "enabled": False,
    }  # fmt: skip
    assert made["on_error"] == "block"
    assert chat(site, key, "before", "The word is swordfish.")["verdict"] == "ALLOW"

    press(page, "Test")
    page.wait(f"{DIALOG}?.textContent.includes('Test of e2e-guard')")
    told = page.run(f"[...{DIALOG}.querySelectorAll('tbody tr')].map(one => one.textContent)")
    assert "Not found" in told[0] and "2.0 %" in told[0]
    assert "Found" in told[1] and "ATTACK" in told[1] and "97.0 %" in told[1]
    assert "e2e/model" in page.run(f"{DIALOG}.textContent")
    page.press("Escape")

    press(page, "Enable")
    page.wait(f"[...{ROW}.querySelectorAll('button')].some(one => one.textContent === 'Disable')")
    row = chat(site, key, "after", "The word is swordfish.")
    assert (row["verdict"], row["detections"][0]["rule"]) == ("BLOCK", "detector:e2e-guard")
    page.run(f"location.hash = '#/traffic/{row['id']}'")
    page.wait("document.querySelector('dialog .ledger')")
    line = page.run("document.querySelector('dialog .ledger tbody tr').textContent")
    assert "Detector e2e-guard" in line and "Says ATTACK" in line and " ms" in line
    page.check()


def test_the_suite_shows_what_a_detector_adds(opened: Callable[..., Page], site: Site, classifier: str) -> None:
    new = {"name": "e2e-guard", "kind": "tei_predict", "base_url": classifier, "allow_private": True}
    made = site.ask("POST", "/api/detectors", new | {"labels": {"ATTACK": "injection"}, "enabled": True})
    assert made.status == 201, made.body
    page = opened("shield/suite")
    page.say("Run the suite")
    send(page, {"category": "jailbreak", "detectors": True})
    page.wait("document.querySelector('[aria-label=\"With detectors\"] tbody tr')", 60)
    (run,) = newest(site, "/api/shield/tests")["last"]["detectors"]
    cells = page.run(f"[...{ROW}.cells].map(one => one.textContent)")
    assert cells[0] == "e2e-guard"
    shares = [(run[name], run["attacks"]) for name in ("found_alone", "found_shield", "found")]
    assert cells[1:4] == [f"{part / whole * 100:.1f} %" for part, whole in shares]
    assert cells[7:9] == [str(run["decided"]), str(run["errors"])]
    page.check()


def test_who_may_only_read_policies_sees_detectors_and_changes_none(
    opened: Callable[..., Page], site: Site, classifier: str
) -> None:
    new = {"name": "e2e-guard", "kind": "tei_predict", "base_url": classifier, "allow_private": True}
    assert site.ask("POST", "/api/detectors", new | {"labels": {"ATTACK": "injection"}, "enabled": False}).status == 201
    page = opened("shield/detectors", role="viewer")
    page.wait(ROW)
    assert page.run(f"{ROW}.querySelector('button')") is None
    assert page.run("document.querySelector('.page-head .tools').childElementCount") == 0
    page.check()
