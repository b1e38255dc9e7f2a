"""A scripted detector: a real HTTP server process that judges texts in every protocol. Standard library only.

    python tests/detector_server.py PORT        (0 picks a free one; the line on stderr says which)

A text with one of BAD is bad with the probability {"score"} (0.9), any other with 0.1. /__mode, /__reset and /__log are
those of `upstream.py`; GET /most tells how many requests it had at once since the last time. The modes:

normal            judges                                  safe            lies: says of every text that it is harmless
slow {"seconds"}  normal, later                           long {"chars"}  refuses longer texts with {"status"} (413)
contradict        says harmless and names what is wrong   wrong           another number of judgements, or half of one
other             good JSON of another protocol           500 … 503       that status
html, empty       200 with that                           huge            2 MB       redirect        307
say {"body"}      that
"""

import json
import sys
import time

import upstream

BAD = ("swordfish", "ignore all previous")
UNSURE = "perhaps"
INFO = {"model_id": "lab/guard", "max_input_length": 512,
        "model_type": {"classifier": {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}}}  # fmt: skip


def is_bad(text):
    return any(word in text.lower() for word in BAD)


def texts_of(path, body):
    """Return the texts of a request, and the function that makes the answer of their probabilities."""
    if path.endswith("/chat/completions"):
        return [body["messages"][-1]["content"]], guard
    if path == "/predict":
        return [text for (text,) in body["inputs"]], lambda found: [
            [{"label": "LABEL_0", "score": 1 - score}, {"label": "LABEL_1", "score": score}] for score, _ in found
        ]
    if path == "/classify":
        return body["input"], lambda found: {
            "data": [
                {"index": at, "label": f"LABEL_{int(score >= 0.5)}", "probs": [1 - score, score], "num_classes": 2}
                for at, (score, _) in enumerate(found)
            ]
        }
    if path.endswith("/moderations"):
        return body["input"], lambda found: {
            "results": [
                {"flagged": score >= 0.5, "categories": {"x": score >= 0.5}, "category_scores": {"x": score}}
                for score, _ in found
            ]
        }
    if path == "/api/v1/text/contents":
        return body["contents"], lambda found: [spans(*one, "detection") for one in found]
    if path == "/analyze":
        return [body["text"]], lambda found: spans(*found[0], "entity_type")
    return [body["q"]], lambda found: {"result": {"score": found[0][0], "label": "bad"}}


def guard(found):
    score, text = found[0]
    said = "Safety: Unsafe\nCategories: Jailbreak" if score >= 0.5 else "Safety: Safe\nCategories: None"
    if UNSURE in text:
        said = "Safety: Controversial\nCategories: None"
    return upstream.completion("guard", upstream.message(said))


def spans(score, text, label):
    """Return the bad words of a text with their places."""
    return [
        {"start": at, "end": at + len(word), "score": score, label: "BAD"}
        for word in BAD
        if (at := text.lower().find(word)) >= 0
    ]


class Detector(upstream.Handler):
    """One connection of a detector."""

    under_way = []
    most = 0

    def answer(self, method, path, headers, body, mode):
        if path == "/most":
            most, Detector.most = Detector.most, 0
            return self.send(200, most)
        self.under_way.append(self)
        Detector.most = max(Detector.most, len(self.under_way))
        try:
            return self.judge(path, body, mode)
        finally:
            self.under_way.remove(self)

    def judge(self, path, body, mode):
        name = mode["mode"]
        if name.isdigit():
            return self.error(int(name))
        if name == "redirect":
            return self.send(307, b"", {"location": "/__log"})
        if name in ("html", "empty"):
            return self.send(200, upstream.ODD_BODIES[name])
        if name == "huge":
            return self.send(200, [" " * (2 << 20)])
        if name == "say":
            return self.send(200, mode["body"])
        if name == "slow":
            time.sleep(mode["seconds"])
        if path == "/info":
            return self.send(200, INFO)
        texts, answer = texts_of(path, json.loads(body))
        if name == "long" and any(len(text) > mode["chars"] for text in texts):
            return self.send(mode.get("status", 413), {"error": "too long", "error_type": "Validation"})
        found = [(mode.get("score", 0.9) if is_bad(text) and name != "safe" else 0.1, text) for text in texts]
        if name == "contradict":
            said = "Safety: Safe\nCategories: Jailbreak"
            return self.send(200, upstream.completion("guard", upstream.message(said)))
        if name == "other":
            return self.send(200, {"verdict": "safe", "score": 0})
        if name == "wrong":
            return self.send(200, [[{"label": "LABEL_1"}]] if len(found) == 1 else answer(found)[:-1])
        return self.send(200, answer(found))


if __name__ == "__main__":
    try:
        upstream.main(int(sys.argv[1]), Detector)
    except KeyboardInterrupt:
        pass
