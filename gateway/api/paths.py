"""From the path of a request to the path that is routed, and what to say of one that is not served. Routes nothing."""

import re
from collections.abc import Callable

from gateway.http.messages import HttpError
from gateway.http.target import ENCODED_SLASH

V1, V2 = "/api/v1/", "/api/v2/"
MODELS = V1 + "models/"
_SERVED = "Of the OpenAI API the gateway serves chat/completions, models and moderations, at /api/v1 and /api/v2."
# The first segments of the paths of the OpenAI API, and their names: https://platform.openai.com/docs/api-reference
_UNSERVED = {
    "completions": "completions", "embeddings": "embeddings", "responses": "responses", "images": "images",
    "audio": "audio", "files": "files", "uploads": "uploads", "batches": "batches",
    "assistants": "assistants", "threads": "threads", "vector_stores": "vector stores", "fine_tuning": "fine-tuning",
    "realtime": "realtime", "conversations": "conversations", "evals": "evals", "videos": "videos",
    "containers": "containers", "organization": "organization", "chat": "stored chat completions",
}  # fmt: skip
# What is before them: the base URLs of other gateways, of Azure, and of clients that add /v1 to any.
_BASE = re.compile(r"(?:/api)?(?:/openai)?(?:/v\d+)*(?:/openai/v\d+)?(?:/(?:deployments|engines)/[^/]+)?/")


def routed_path(path: str) -> str:
    """Return the path to look for. Version 2 serves what version 1 does, and streams.

    The slashes of a model's id are encoded: to the router an id is one segment.

    Raises:
        HttpError: 400, a slash is encoded in another path, where a proxy could read it as another one.
    """
    if path.startswith(V2):
        path = V1 + path.removeprefix(V2)
    if path.startswith(MODELS) and not path.endswith("/"):
        return MODELS + path.removeprefix(MODELS).replace("/", ENCODED_SLASH)
    if ENCODED_SLASH in path:
        raise HttpError(400, "invalid_request", "The path holds an encoded slash; send it as it is.")
    return path


def model_id(path: str) -> str:
    """Return the id in the path of a model."""
    return routed_path(path).removeprefix(MODELS).replace(ENCODED_SLASH, "/")


def not_served(path: str, is_served: Callable[[str], bool]) -> HttpError:
    """Return the 404 for a path that no row has, with what a client may have meant by it."""
    if path.endswith("/") and is_served(path.rstrip("/")):
        return _not_found("There is no such path: leave out the slash at its end.")
    base = _BASE.match(path)
    rest = path[base.end() :] if base else ""
    if is_served("/api/v1/" + rest.rstrip("/")):
        return _not_found("There is no such path: the base URL of the API is /api/v1.")
    name = _UNSERVED.get(rest.partition("/")[0])
    if name is not None:
        return _not_found(f"The gateway does not serve {name}. {_SERVED}")
    return _not_found("There is no such path.")


def _not_found(message: str) -> HttpError:
    return HttpError(404, "not_found", message)
