"""Providers: their record, the models they serve, and the reference to their key. Pure: reads no key."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from gateway.domain.globs import glob
from gateway.domain.prices import Price
from gateway.errors import InvalidRequest
from gateway.field_types import WHOLE_PATH, is_line

MAX_PROVIDERS = 200
MAX_MODELS = 200
MAX_MODEL_CHARS = 200
MAX_PRIORITY = 1000
MAX_WEIGHT = 1000
MAX_TIMEOUT_SECONDS = 3600
MAX_RETRIES = 5
MAX_KEY_BYTES = 8192
MAX_PATH_CHARS = 1000
DEFAULT_PRIORITY = 100
DEFAULT_TIMEOUT_SECONDS = 600.0
DEFAULT_RETRIES = 1
UPSTREAM = "upstream"
"""Id and name of the provider that the settings define."""
STORED = "stored"

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_CREDENTIAL = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)
_KEY = re.compile(r"[!-~]{1,8192}")
REFERENCE_PROMISE = (
    "env:[A-Za-z_][A-Za-z0-9_]{0,127}|cred:(?!\\.\\.?$)[A-Za-z0-9_.-]{1,128}"
    f"|file:(?!.{{{MAX_PATH_CHARS + 1}}}){WHOLE_PATH}"
)
KEY_PROMISE = f"^(?:{REFERENCE_PROMISE}|(?!(?:env|file|cred):)[!-~]{{1,{MAX_KEY_BYTES}}})$"
"""The pattern of the texts that `read_key` accepts."""
_GLOB_SIGNS = frozenset("*?[")

Origin = Literal["record", "settings", "built-in"]


class ProviderType(StrEnum):
    """The protocol of a provider. ECHO is the built-in model, which answers with the prompt."""

    OPENAI = "openai-compatible"
    ECHO = "echo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """One provider. It never holds the key itself.

    base_url: with the version in its path, such as ``https://api.example.com/v1``; None for ECHO.
    key_reference: ``env:NAME``, ``file:PATH``, ``cred:NAME``, or ``stored:ID`` for the file beside the database; None
    without a key. models: globs of the models it serves. priority: the gateway tries the lowest first.
    weight: the share of requests among providers of one priority. max_retries: how often a request is repeated before
    the next provider. prices: by model glob; they come before the general table. version: rises with every change.
    origin: a stored record, the settings, or the built-in model that answers while there is no other provider.
    """

    id: str
    name: str
    type: ProviderType = ProviderType.OPENAI
    base_url: str | None = None
    key_reference: str | None = field(default=None, metadata={"json_name": None})
    models: tuple[str, ...] = ("*",)
    priority: int = DEFAULT_PRIORITY
    weight: int = 1
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    max_retries: int = DEFAULT_RETRIES
    prices: Mapping[str, Price] = field(default_factory=dict, metadata={"json_name": None})
    enabled: bool = True
    allow_private: bool = False
    created_at: int = 0
    created_by: str = ""
    version: int = 1
    origin: Origin = "record"

    def serves(self, model: str) -> bool:
        """Return whether the provider serves a model. Case does not matter."""
        folded = model.strip().casefold()
        return any(glob(pattern).match(folded) for pattern in self.models)

    def literal_models(self) -> tuple[str, ...]:
        return tuple(name for name in self.models if not _GLOB_SIGNS & set(name))

    def key_source(self) -> str | None:
        """Return the key reference for display: `STORED` in place of a reference to the stored file."""
        reference = self.key_reference
        return STORED if reference is not None and reference.startswith("stored:") else reference


def check_type(provider: Provider) -> None:
    """Raise InvalidRequest for a field that this type of provider does not have. `param` names it."""
    is_echo = provider.type is ProviderType.ECHO
    for name, value in (("base_url", provider.base_url), ("api_key", provider.key_reference)):
        if is_echo and value is not None:
            raise _bad(name, "is not a field of a provider of type echo")
    if not is_echo and provider.base_url is None:
        raise _bad("base_url", "is missing")


def read_key(text: str, *, param: str = "api_key") -> tuple[str | None, str | None]:
    """Return `text` as ``(reference, None)`` if it is a reference to a key, or as ``(None, key)`` if it is a key.

    Raises:
        InvalidRequest: `text` is neither. The message never repeats it.
    """
    kind, separator, name = text.partition(":")
    if not separator or kind not in ("env", "file", "cred"):
        if not _KEY.fullmatch(text):
            forms = "env:NAME, file:/PATH, cred:NAME, or a key of visible ASCII characters without blanks"
            raise _bad(param, f"must be {forms}")
        return None, text
    if kind == "env" and not _VARIABLE.fullmatch(name):
        raise _bad(param, "names no environment variable after env:")
    if kind == "cred" and (not _CREDENTIAL.fullmatch(name) or name in (".", "..")):
        raise _bad(param, "names no credential after cred:")
    if kind == "file" and (
        not name.startswith("/") or not is_line(name) or len(name) > MAX_PATH_CHARS or ".." in name.split("/")
    ):
        raise _bad(param, "must name the absolute path of a file after file:, without ..")
    return text, None


def _bad(param: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{param} {reason}.", param=param)
