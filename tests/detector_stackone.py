"""A real detector: the classifier of the package stackone-defender, in the protocol of Text Embeddings Inference.

    python3 -m venv ../stackone && ../stackone/bin/pip install 'stackone-defender[onnx]==0.9.4'
    ../stackone/bin/python tests/detector_stackone.py 8085

The package holds its weights, so nothing is downloaded and nothing leaves this host. `INJECTION` has the score that the
package itself compares with 0.52. It judges no text of fewer than ten characters: the score of those is 0.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from stackone_defender.classifiers.tier2_classifier import (  # type: ignore[import-not-found,unused-ignore]
    create_tier2_classifier,
)

BENIGN_SKIPS = ("Text below minTextLength", "No classifiable sentences")
CLASSIFIER = create_tier2_classifier()
INFO = {
    "model_id": "stackone-defender",
    "model_type": {
        "classifier": {"id2label": {"0": "SAFE", "1": "INJECTION"}, "label2id": {"SAFE": 0, "INJECTION": 1}}
    },
    "max_input_length": 256,
}


def scores(text: str) -> list[dict[str, object]]:
    """Return both labels of a text. Raises RuntimeError: the package gave no score."""
    said = CLASSIFIER.classify_by_chunks(text)
    if said["skipped"] and said.get("skip_reason") not in BENIGN_SKIPS:
        raise RuntimeError(said.get("skip_reason"))
    score = float(said["score"])
    return [{"label": "INJECTION", "score": score}, {"label": "SAFE", "score": 1 - score}]


class Handler(BaseHTTPRequestHandler):
    """`POST /predict` and `GET /info`."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body of an answer leave together

    def do_GET(self) -> None:
        """Say which model this is."""
        self._answer(200 if self.path == "/info" else 404, INFO)

    def do_POST(self) -> None:
        """Judge each text of a batch."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        try:
            self._answer(200, [scores(text) for (text,) in asked["inputs"]])
        except RuntimeError as error:
            self._answer(424, {"error": str(error), "error_type": "backend"})

    def _answer(self, status: int, value: object) -> None:
        raw = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *words: object) -> None:
        """Say nothing of a request."""


if __name__ == "__main__":
    CLASSIFIER.warmup()
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", file=sys.stderr, flush=True)
    server.serve_forever()
