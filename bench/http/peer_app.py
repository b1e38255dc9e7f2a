"""The peer: a Starlette application that does the least for the same answers. For uvicorn; needs aiohttp to chat.

It checks one key by its hash and calls the same shield: for a scan, and for the prompt and the reply of a chat. It has
no rate limit, no records, no metrics and no deadlines.
"""

import hashlib
import json
import os
from dataclasses import asdict
from typing import Any

import aiohttp
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gateway.shield import Direction, Verdict, load

SHIELD = load()
KEYS = {hashlib.sha256(os.environ["BENCH_KEY"].encode()).digest()}
UPSTREAM = os.environ["BENCH_UPSTREAM"]
JSON = "application/json"
state: dict[str, aiohttp.ClientSession] = {}


def is_known(request: Request) -> bool:
    """Tell whether the key is ours."""
    key = request.headers.get("x-service-key", "")
    return hashlib.sha256(key.encode("latin-1")).digest() in KEYS


async def health(request: Request) -> Response:
    """Answer a probe."""
    return JSONResponse({"status": "ok", "name": "peer"})


async def shield(request: Request) -> Response:
    """Tell which rules and which matcher are used, so that the run can say that they are the same."""
    return JSONResponse({"digest": SHIELD.digest, "matcher": SHIELD.matcher})


async def scan(request: Request) -> Response:
    """Scan a text."""
    if not is_known(request):
        return JSONResponse({"error": "unauthorized"}, 401)
    body: Any = await request.json()
    result = SHIELD.scan(body["text"], Direction(body["direction"]))
    found = [asdict(detection) for detection in result.detections]
    return JSONResponse({"verdict": result.verdict.value, "score": result.score, "detections": found})


def is_blocked(text: str, direction: Direction) -> bool:
    """Tell whether the shield blocks a text."""
    return SHIELD.scan(text, direction).verdict is Verdict.BLOCK


async def chat(request: Request) -> Response:
    """Scan the prompt, pass the chat on as it came, and scan the reply."""
    if not is_known(request):
        return JSONResponse({"error": "unauthorized"}, 401)
    body = await request.body()
    if any(is_blocked(message["content"], Direction.INBOUND) for message in json.loads(body)["messages"]):
        return JSONResponse({"error": "blocked"}, 400)
    if "client" not in state:
        state["client"] = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=256))
    async with state["client"].post(UPSTREAM + "/chat/completions", data=body, headers={"content-type": JSON}) as reply:
        answer = await reply.read()
        if is_blocked(json.loads(answer)["choices"][0]["message"]["content"], Direction.OUTBOUND):
            return JSONResponse({"error": "blocked"}, 400)
        return Response(answer, reply.status, media_type=JSON)


app = Starlette(
    routes=[
        Route("/api/v1/health", health),
        Route("/shield", shield),
        Route("/api/v1/shield/scan", scan, methods=["POST"]),
        Route("/api/v1/chat/completions", chat, methods=["POST"]),
    ]
)
