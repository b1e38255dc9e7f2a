"""A scripted OpenAI-compatible upstream: a real HTTP server process that behaves as it is told. Standard library only.

    python tests/upstream.py PORT        (0 picks a free one; the line on stderr says which)

POST /__mode {"mode": M, ...} sets what POST …/chat/completions does from now on, POST /__reset forgets mode and log,
GET /__log lists the requests seen: {"method", "path", "headers", "body"}. GET …/models lists two models.

normal            one completion, or `n` of them          tools, parts, audio, refusal, null   other forms of one
echo              the request's JSON as the content        slow {"seconds"}   normal, later      hang   never an answer
hold              normal, once it is told another mode
400 … 503         that status, with an OpenAI error        500once            500, then normal   redirect   307
garbage, html, empty, bad utf8, wrong shape, list, bad gzip                   200 with that
close             no answer at all                         cut                half an answer, then the end
stall             half an answer, then nothing
chunked, trickle  in chunks; in small slow chunks          gzip, bomb         compressed; 64 MiB of blanks
drip              in small chunks, half a second between
huge {"megabytes"}                                         evil headers       headers that must not be passed on
flood, flood bomb, flood declared {"megabytes"}            blanks in chunks; compressed; with a length
say {"text"}      that, streamed with {"more"} in its message; or {"status", "body"}, a JSON body
leak {"place"}    a made-up secret in one of PLACES

A request with `stream` gets the completion of the mode as server-sent events, cut into pieces of {"piece"} characters
with {"pause"} seconds between. {"fault"} spoils the stream: die, stall, half, bytes, garbage, gzip, twice, crlf, cr,
error, no end, empty, json.
"""

import gzip
import json
import socketserver
import sys
import threading
import time
import zlib

# Made up, in the form of a cloud vendor's key. Put together here so that no scanner of repositories takes it for one.
SECRET = "AKIA" + "V3QJ7TXKZ2MWN5RD"
LEAK = f"aws_access_key_id = {SECRET} and aws_secret_access_key = " + "Jw8rT2vXq9LmZ4cYb7NdKf3HgPs6RuEa1QoWiVtB"
PLACES = (
    "content",
    "arguments",
    "function arguments",
    "second choice",
    "refusal",
    "reasoning",
    "parts",
    "cut parts",
    "id",
    "model",
    "annotations",
    "logprobs",
    "bytes",
    "transcript",
    "tool name",
    "escaped",
    "header",
    "error",
)
MODELS = ("test-model", "other-model")
TEXT = "Hello from the scripted upstream."
ERRORS = {
    400: ("Bad request of the script.", "invalid_request_error", "scripted_code"),
    401: ("Incorrect API key provided: sk-upstream****up.", "invalid_request_error", "invalid_api_key"),
    402: ("Insufficient credits of org-scripted.", "payment_error", 402),
    403: ("No access for org-scripted.", "permission_error", None),
    404: ("The model `x` does not exist.", "invalid_request_error", "model_not_found"),
    429: ("Rate limit reached in organization org-scripted.", "requests", "rate_limit_exceeded"),
    500: ("The server had an error.", "server_error", None),
    503: ("Overloaded.", "server_error", None),
}


class Script:
    """What the server does and what it saw."""

    def __init__(self):
        self.lock = threading.Lock()
        self.reset()

    def reset(self):
        self.mode = {"mode": "normal"}
        self.log = []
        self.failures = 0


SCRIPT = Script()


def completion(model, *messages, finish_reason="stop", **more):
    choices = [
        {"index": index, "message": message, "logprobs": None, "finish_reason": finish_reason}
        for index, message in enumerate(messages)
    ]
    answer = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": choices,
        "usage": {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16},
        "system_fingerprint": "fp_scripted",
    }
    return {**answer, **more}


def message(content=TEXT, **more):
    return {"role": "assistant", "content": content, "refusal": None, **more}


def tool_call(name, arguments):
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def leaking(place, model):
    """Return a completion with the secret in one place."""
    citation = {"type": "url_citation", "url_citation": {"title": LEAK, "url": "https://x.example/?q=" + SECRET}}
    halves = [{"type": "text", "text": LEAK[:30]}, {"type": "text", "text": LEAK[30:]}]
    messages = {
        "content": [message("Sure: " + LEAK)],
        "arguments": [message(None, tool_calls=[tool_call("f", json.dumps({"x": LEAK}))])],
        "function arguments": [message(None, function_call={"name": "f", "arguments": json.dumps({"x": LEAK})})],
        "second choice": [message(), message(LEAK)],
        "refusal": [message(None, refusal=LEAK)],
        "reasoning": [message(reasoning_content=LEAK)],
        "parts": [message([{"type": "text", "text": LEAK}])],
        "cut parts": [message(halves)],
        "annotations": [message(annotations=[citation])],
        "transcript": [message(None, audio={"id": "a", "data": "AAAA", "expires_at": 1, "transcript": LEAK})],
        "tool name": [message(None, tool_calls=[tool_call(LEAK.replace(" ", "_"), "{}")])],
    }
    answer = completion(model, *messages.get(place, [message()]))
    if place == "id":
        answer["id"] = answer["system_fingerprint"] = LEAK
    elif place == "model":
        answer["model"] = LEAK
    elif place in ("logprobs", "bytes"):
        token = {"token": LEAK if place == "logprobs" else "?", "logprob": -0.1, "bytes": list(LEAK.encode())}
        answer["choices"][0]["logprobs"] = {"content": [token | {"top_logprobs": []}], "refusal": None}
    return answer


def formed(mode, model, request):
    """Return the completion of a mode whose answer is a good one."""
    if mode == "tools":
        calls = [tool_call("get_weather", '{"city": "Paris"}')]
        return completion(model, message(None, tool_calls=calls), finish_reason="tool_calls")
    if mode == "parts":
        return completion(model, message([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]))
    if mode == "audio":
        return completion(model, message(None, audio={"id": "a", "data": "UklGRg==", "transcript": "hi"}))
    if mode == "refusal":
        return completion(model, message(None, refusal="I cannot help."))
    if mode == "null":
        return completion(model, message(None))
    if mode == "echo":
        return completion(model, message(json.dumps(request)))
    count = request.get("n") if isinstance(request.get("n"), int) else 1
    return completion(model, *[message()] * count)


def chunks_of(answer, mode):
    """Yield the chunks of a completion."""
    piece = mode.get("piece", 5)
    around = {"id": answer["id"], "created": answer["created"], "model": answer["model"], "system_fingerprint": "fp"}
    around["object"] = "chat.completion.chunk"

    def chunk(index, delta, finish_reason=None):
        return {**around, "choices": [{"index": index, "delta": delta, "finish_reason": finish_reason}]}

    for choice in answer["choices"]:
        index = choice["index"]
        yield chunk(index, {"role": "assistant", "content": ""})
        for name, value in choice["message"].items():
            if name == "tool_calls":
                for place, call in enumerate(value):
                    arguments = call["function"]["arguments"]
                    begun = {**call, "index": place, "function": {**call["function"], "arguments": ""}}
                    yield chunk(index, {"tool_calls": [begun]})
                    for begin in range(0, len(arguments), piece):
                        more = {"index": place, "function": {"arguments": arguments[begin : begin + piece]}}
                        yield chunk(index, {"tool_calls": [more]})
            elif isinstance(value, str) and name != "role":
                for begin in range(0, len(value), piece):
                    yield chunk(index, {name: value[begin : begin + piece]})
            elif value is not None and name != "role":
                yield chunk(index, {name: value})
        yield chunk(index, {}, choice["finish_reason"])
    yield {**around, "choices": [], "usage": answer["usage"]}


SPOILED = {
    "die": lambda event: "",
    "stall": lambda event: "",
    "half": lambda event: event[: len(event) // 2],
    "garbage": lambda event: "data: {not json\n\n",
    "error": lambda event: 'data: {"error": {"message": "The server had an error.", "type": "server_error"}}\n\n',
}


class Handler(socketserver.StreamRequestHandler):
    """One connection, any number of requests."""

    def handle(self):
        try:
            while self.one():
                pass
        except (OSError, ValueError, IndexError):
            return

    def one(self):
        line = self.rfile.readline(65536).decode("latin-1").split()
        if len(line) != 3:
            return False
        method, path, _ = line
        headers = {}
        while field := self.rfile.readline(65536).strip().decode("latin-1"):
            name, _, value = field.partition(":")
            headers[name.strip().lower()] = value.strip()
        body = self.rfile.read(int(headers.get("content-length", 0)))
        if path == "/__log":
            with SCRIPT.lock:
                return self.send(200, list(SCRIPT.log))
        if path in ("/__mode", "/__reset"):
            with SCRIPT.lock:
                SCRIPT.failures = 0
                if path == "/__reset":
                    SCRIPT.reset()
                else:
                    SCRIPT.mode = json.loads(body)
            return self.send(200, {})
        with SCRIPT.lock:
            SCRIPT.log.append(
                {"method": method, "path": path, "headers": headers, "body": body.decode("utf-8", "replace")}
            )
            mode = dict(SCRIPT.mode)
        return self.answer(method, path, headers, body, mode)

    def answer(self, method, path, headers, body, mode):
        """Answer one request by the mode. Returns whether the connection goes on."""
        if path.endswith("/models"):
            listed = [
                {"id": name, "object": "model", "created": 1, "owned_by": "script"}
                for name in mode.get("names", MODELS)
            ]
            return self.send(200, {"object": "list", "data": listed})
        if method == "POST" and path.endswith("/chat/completions"):
            return self.chat(mode, json.loads(body))
        return self.error(404)

    def chat(self, mode, request):
        """Act out a mode. Returns whether the connection goes on."""
        name, model = mode["mode"], request.get("model", "")
        if name == "500once":
            with SCRIPT.lock:
                SCRIPT.failures += 1
                is_first = SCRIPT.failures == 1
            name = "500" if is_first else "normal"
        if name.isdigit():
            return self.error(int(name))
        if name == "say" and request.get("stream"):
            return self.stream(completion(model, message(mode.get("text", TEXT), **mode.get("more", {}))), mode)
        if name == "say":
            answer = completion(model, message(mode.get("text", TEXT)))
            return self.send(mode.get("status", 200), mode.get("body", answer))
        if name in ODD_BODIES:
            return self.send(200, ODD_BODIES[name])
        if name == "leak":
            return self.leak(mode.get("place", "content"), model, bool(request.get("stream")))
        if name == "hang":
            time.sleep(3600)
        while name == "hold" and SCRIPT.mode["mode"] == "hold":
            time.sleep(0.02)
        if name == "slow":
            time.sleep(mode.get("seconds", 1))
        if name == "close":
            return False
        answer = formed(name, model, request)
        if name == "huge":
            answer["choices"][0]["message"]["content"] = "lorem ipsum " * (mode.get("megabytes", 20) * 87_382)
        raw = json.dumps(answer).encode()
        if request.get("stream") and name != "redirect" and mode.get("fault") != "json":
            return self.stream(answer, mode)
        if name in ("cut", "stall"):
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(raw) + raw[: len(raw) // 2])
            if name == "stall":
                time.sleep(3600)
            return False
        if name in ("chunked", "trickle"):
            return self.chunks(raw, pause_seconds=0.01 if name == "trickle" else 0.0)
        if name == "drip":
            return self.chunks(raw, pause_seconds=0.5)
        if name.startswith("flood"):
            return self.flood(name, mode.get("megabytes", 200))
        if name == "bomb":
            return self.send(200, gzip.compress(raw[:-1] + b" " * (64 << 20) + raw[-1:]), {"content-encoding": "gzip"})
        if name == "bad gzip":
            return self.send(200, b"no gzip at all", {"content-encoding": "gzip"})
        if name == "gzip":
            return self.send(200, gzip.compress(raw), {"content-encoding": "gzip"})
        if name == "redirect":
            return self.send(307, b"", {"location": "/__redirected"})
        if name == "evil headers":
            return self.send(200, answer, EVIL)
        return self.send(200, answer)

    def flood(self, name, megabytes):
        """Send blanks without ever holding them all."""
        headers = {
            "flood": "transfer-encoding: chunked",
            "flood bomb": "transfer-encoding: chunked\r\ncontent-encoding: gzip",
        }
        length = f"content-length: {megabytes << 20}"
        self.wfile.write(f"HTTP/1.1 200 OK\r\n{headers.get(name, length)}\r\n\r\n".encode())
        squeeze = zlib.compressobj(wbits=31) if name == "flood bomb" else None
        for _ in range(megabytes):
            piece = b" " * (1 << 20)
            if squeeze is not None:
                piece = squeeze.compress(piece)
            if name == "flood declared":
                self.wfile.write(piece)
            elif piece:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if squeeze is not None:
            piece = squeeze.flush()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if name != "flood declared":
            self.wfile.write(b"0\r\n\r\n")
        return False

    def leak(self, place, model, mode_streams=False):
        if place == "error":
            return self.send(400, {"error": {"message": "Invalid: " + LEAK, "type": "invalid_request_error"}})
        answer = leaking(place, model)
        if mode_streams:
            return self.stream(answer, {})
        if place == "escaped":
            escaped = "".join(f"\\u{ord(letter):04x}" for letter in LEAK)
            return self.send(200, json.dumps(answer).replace(TEXT, escaped).encode())
        return self.send(200, answer, {"x-leak": LEAK, "openai-model": SECRET} if place == "header" else {})

    def stream(self, answer, mode):
        """Send a completion as events; a fault spoils them in the middle or at the end."""
        fault, pause_seconds = mode.get("fault"), mode.get("pause", 0)
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
        self.wfile.write((head + "content-encoding: gzip\r\n" * (fault == "gzip") + "\r\n").encode())

        def put(raw):
            step = 1 if fault == "bytes" else len(raw)
            for begin in range(0, len(raw), step):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(raw[begin : begin + step]), raw[begin : begin + step]))

        line = {"crlf": "\r\n", "cr": "\r"}.get(fault, "\n")
        events = (
            [] if fault == "empty" else [f"data: {json.dumps(event)}{line}{line}" for event in chunks_of(answer, mode)]
        )
        for number, event in enumerate(events):
            if number == len(events) // 2 and fault in SPOILED:
                put(SPOILED[fault](event).encode())
                if fault == "stall":
                    time.sleep(3600)
                if fault in ("die", "half"):
                    return False
            put(event.encode())
            time.sleep(pause_seconds)
        if fault != "no end":
            put(f"data: [DONE]{line}{line}".encode() * (2 if fault == "twice" else 1))
        self.wfile.write(b"0\r\n\r\n")
        return True

    def error(self, status):
        text, kind, code = ERRORS.get(status, ("Refused by the script.", "invalid_request_error", None))
        error = {"message": text, "type": kind, "param": None, "code": code}
        return self.send(status, {"error": error}, {"retry-after": "7"} if status in (429, 503) else {})

    def chunks(self, raw, pause_seconds):
        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        for begin in range(0, len(raw), 40):
            piece = raw[begin : begin + 40]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            time.sleep(pause_seconds)
        self.wfile.write(b"0\r\n\r\n")
        return True

    def send(self, status, body, headers=None):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        fields = {
            "content-type": "application/json",
            "openai-processing-ms": "5",
            "openai-organization": "org-scripted",
        }
        fields |= {"set-cookie": "upstream=1", "x-ratelimit-limit-requests": "1"} | (headers or {})
        fields["content-length"] = str(len(raw))
        head = f"HTTP/1.1 {status} Scripted\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.wfile.write(head.encode("latin-1") + b"\r\n" + raw)
        return True


ODD_BODIES = {
    "garbage": b"\x00\xff\xfenot json{{{",
    "html": b"<html><body>Please log in</body></html>",
    "empty": b"",
    "bad utf8": json.dumps(completion("m", message())).encode().replace(b"Hello", b"He\xff\xfe"),
    "wrong shape": json.dumps({"choices": "no", "usage": [1]}).encode(),
    "list": b"[1, 2, 3]",
}
EVIL = {
    "access-control-allow-origin": "*",
    "location": "http://evil.example/",
    "x-powered-by": "script",
    "content-security-policy": "default-src *",
    "proxy-authenticate": "Basic",
    "x-service-shield-verdict": "ALLOW",
}


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


def main(port, handler=Handler):
    with Server(("127.0.0.1", port), handler) as server:
        print(f"listening on http://127.0.0.1:{server.server_address[1]}", file=sys.stderr, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except KeyboardInterrupt:
        pass
