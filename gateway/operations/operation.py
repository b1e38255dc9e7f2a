"""The shape of one row: an operation, its parameters, and who may use it. Defines no operation.

Routes, OpenAPI, the tables of docs/reference and the tests of permissions are derived from the rows.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any

from gateway.app import Gateway
from gateway.domain.principals import REQUEST_ID, Caller, Permission, Principal, Scope, read_request_id
from gateway.errors import InvalidRequest
from gateway.schema import JsonSchema
from gateway.strict_json import TIME_PATTERN, read_integer, read_time

MAX_FILTER_CHARS = 200

ANONYMOUS = Principal(kind="key", id="", name="anonymous", scopes=frozenset(), permissions=frozenset())
"""A caller without a key, of an operation that needs none."""

Call = Callable[[Gateway, Caller, Any], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class ById:
    """What a row takes whose path holds everything: the id, written ``{id}``."""

    id: str


@dataclass(frozen=True, slots=True)
class Since:
    """What a row takes whose query may only name a start."""

    since: int | None = None


class Door(Enum):
    """Who is admitted. Every row names a door, so none is open by omission.

    KEY: callers with an API key of the row's scope. OPTIONAL: everybody; callers with a good key get more.
    LOOPBACK: this host's own user, and callers with a key of the row's scope. OPEN: everybody.
    SESSION: a signed-in user with the row's permission, or any signed-in user if the row names none.
    SIGN_IN: users who sign in. PAGE: everybody who may load the page for signing in, which holds no data.
    With `RBAC_ENABLED` off, the last three admit only this host's own user, who need not sign in.
    """

    KEY = "key"
    OPTIONAL = "optional"
    LOOPBACK = "loopback"
    OPEN = "open"
    SESSION = "session"
    SIGN_IN = "sign_in"
    PAGE = "page"

    @property
    def is_internal(self) -> bool:
        """Whether this is a door of the internal API."""
        return self in (Door.SESSION, Door.SIGN_IN, Door.PAGE)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of the query.

    read: from its text and the time (Unix milliseconds) to the value of the filter's field of the same name; raises
    InvalidRequest. schema: JSON Schema of the text as sent; None when no schema can tell a good text from a bad one.
    """

    name: str
    about: str
    read: Callable[[str, int], object]
    schema: JsonSchema | None
    is_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing that the gateway can be asked to do.

    name: unique, and the operationId of the OpenAPI document. route: method and path template. needs: the scope or, on
    the internal API, the permission that a caller must have.
    takes: the record made of the body or, with `query`, of the query. None: neither is read. Parts of the path fill the
    fields of the same names, and `If-Match` fills `version`.
    gives: the record of the answer (of one item, for a list); `write` and `schema` replace what `gateway.schema`
    derives from it. None: the answer has no envelope. is_list: the answer is a page. status: of a good answer.
    call: None when an edge answers by itself (chat, metrics, sign-in).
    body_setting: name of the setting that bounds the body. fails: codes beyond those that every row of its door has.
    has_secret: whether the answer carries a secret, and so is never compressed. is_openai: whether its clients are
    those of the OpenAI API, which add query parameters of their own and read their own names of the rate headers.
    max_chars: settings that bound texts of the body, by field; the service enforces them.
    kinds: schemas of which the body must fit one, where fields depend on each other. They are for the OpenAPI document
    only; the service checks the same and refuses in its own words.
    """

    name: str
    route: tuple[str, str]
    door: Door
    needs: Scope | Permission | None
    summary: str
    takes: type[object] | None = None
    query: tuple[Parameter, ...] = ()
    gives: type[object] | None = None
    write: Callable[[Any], object] | None = None
    schema: Callable[[], JsonSchema] | None = None
    is_list: bool = False
    call: Call | None = None
    status: int = 200
    body_setting: str = "max_body_bytes"
    max_chars: Mapping[str, str] | None = None
    kinds: tuple[JsonSchema, ...] = ()
    fails: tuple[str, ...] = ()
    has_secret: bool = False
    is_openai: bool = False


def text(name: str, about: str) -> Parameter:
    """Return a parameter of free text, 1 to 200 characters."""

    def read(value: str, now_at: int) -> object:
        if not 1 <= len(value) <= MAX_FILTER_CHARS or "\0" in value:
            raise InvalidRequest(f"{name} must be 1 to {MAX_FILTER_CHARS} characters, none of them null.", param=name)
        return value

    schema: JsonSchema = {"type": "string", "minLength": 1, "maxLength": MAX_FILTER_CHARS, "pattern": "^[^\\u0000]+$"}
    return Parameter(name, about, read, schema)


def request_id() -> Parameter:
    """Return the parameter `request_id`."""
    about = "The id of a request, as its answer has it in `X-Service-Request-Id`."
    schema: JsonSchema = {"type": "string", "pattern": f"^{REQUEST_ID}$"}
    return Parameter("request_id", about, lambda value, now_at: read_request_id(value), schema)


def texts(name: str, about: str) -> Parameter:
    """Return a parameter of several texts, separated by commas."""

    def read(value: str, now_at: int) -> object:
        if len(value) > MAX_FILTER_CHARS or form.fullmatch(value) is None:
            raise InvalidRequest(f"{name} must be names separated by commas, without spaces.", param=name)
        return tuple(value.split(","))

    # In ASCII: what counts as white space differs between Python's regexes and those of JSON Schema.
    names = "[!-+\\--~]+(?:,[!-+\\--~]+)*"
    form = re.compile(names)
    schema: JsonSchema = {"type": "string", "maxLength": MAX_FILTER_CHARS, "pattern": f"^{names}$"}
    return Parameter(name, about, read, schema)


def choice(name: str, values: type[StrEnum] | tuple[str, ...], about: str) -> Parameter:
    """Return a parameter that is one of a few words."""
    known: dict[str, object] = (
        {value: value for value in values} if isinstance(values, tuple) else {one.value: one for one in values}
    )

    def read(value: str, now_at: int) -> object:
        if value not in known:
            raise InvalidRequest(f"{name} must be one of {', '.join(known)}.", param=name)
        return known[value]

    return Parameter(name, about, read, {"type": "string", "enum": list(known)})


def integer(name: str, about: str, low: int, high: int, default: int | None = None) -> Parameter:
    """Return a parameter that is a whole number."""
    schema: JsonSchema = {"type": "integer", "minimum": low, "maximum": high}
    schema |= {} if default is None else {"default": default}
    return Parameter(name, about, lambda value, now_at: read_integer(value, param=name, low=low, high=high), schema)


def time(name: str, about: str) -> Parameter:
    """Return a parameter that is an RFC 3339 time, a date, or an age such as 24h."""
    schema: JsonSchema = {"type": "string", "pattern": TIME_PATTERN}
    return Parameter(name, about, lambda value, now_at: read_time(value, param=name, now_at=now_at), schema)


def cursor() -> Parameter:
    """Return the parameter that continues where a page ended."""
    return Parameter("cursor", "`page.next` of the page before, unchanged.", lambda value, now_at: value, None)


def kind(needs: tuple[str, ...] = (), /, **properties: JsonSchema) -> JsonSchema:
    """Return the schema of bodies whose fields of these names fit these schemas. needs: the required fields."""
    return {"properties": properties} | ({"required": list(needs)} if needs else {})
