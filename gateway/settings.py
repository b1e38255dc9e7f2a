"""Every setting, one row each: flag over environment over TOML file over default. The only door to the environment."""

import ipaddress
import os
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Literal

from gateway.errors import SetupError
from gateway.spelling import hint, nearest

_MOST_SOCKETS = 2
# As browsers serialize it: in lower case, without a path and without the usual port (RFC 6454 section 6.2).
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?:[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[1-9][0-9]{0,4})?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_FIRST_SOCKET = 3  # SD_LISTEN_FDS_START
MOST_WORKERS = 64
MAX_TEXT_CHARS = 500_000
MAX_CHAT_CHARS = 8_000_000
_BYTES = 1024 * 1024
KNOWN_ELSEWHERE = ("GATEWAY_CONFIG", "GATEWAY_NATIVE")
PROVIDER_VARIABLES = "GATEWAY_PROVIDER_*"
"""Variables that hold keys of providers, unless `provider_key_env` names others. They are no settings."""
_VARIABLES = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*)?\*?", re.ASCII)
_TRUTH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_LINKS = ("tcp://", "udp://", "sctp://")  # what Kubernetes writes into NAME_PORT for each Service
OURS = ("GATEWAY_", "MCP_", "RBAC_")  # how our variables begin


def _row(default: object, about: str, *, env: str | None = None, secret: bool = False, group: str = "") -> typing.Any:
    """Describe one setting. env: its variable, if not GATEWAY_ and the name. group: the title of one that begins here.

    A secret has no flag.
    """
    return field(default=default, metadata={"about": about, "env": env, "secret": secret, "group": group})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the operator decided. Units stand in the names; None means not set."""

    host: str = _row(
        "127.0.0.1",
        "Address to listen on. An address other than loopback needs RBAC_ENABLED=true.",
        group="Network and processes",
    )
    port: int = _row(5001, "Port to listen on; 0 picks a free one.")
    workers: int = _row(1, f"Worker processes that share the port, 1 to {MOST_WORKERS}. They share rate limits.")
    worker_cpu_affinity: Literal["auto", "off"] = _row(
        "auto", "auto pins each worker to a CPU if there are enough CPUs; off does not."
    )
    tls_cert: str | None = _row(None, "Certificate chain (PEM) for HTTPS.")
    tls_key: str | None = _row(None, "Private key (PEM) of the certificate.")
    allowed_hosts: tuple[str, ...] = _row(
        (), "Host names to accept in the Host header, comma-separated; empty accepts any."
    )
    trusted_proxies: tuple[str, ...] = _row(
        (), "Networks whose X-Forwarded-For header the gateway trusts, comma-separated."
    )
    cors_origins: tuple[str, ...] = _row(
        (), "Origins whose web pages may call the public API, comma-separated, such as https://app.example.com."
    )
    rbac_enabled: bool = _row(
        False,
        "Whether the internal API requires sign-in. Set it before a proxy or another host can reach the port.",
        env="RBAC_ENABLED",
    )
    drain_seconds: float = _row(30.0, "Seconds that SIGTERM waits for requests in flight.")
    data_dir: str = _row(
        "", "Folder for the database and credentials; :memory: writes nothing to disk.", group="Data and log"
    )
    database_url: str | None = _row(
        None, "Database that many gateways share, postgresql://USER@HOST/NAME. Unset: SQLite in data_dir.", secret=True
    )
    database_password_file: str | None = _row(None, "File whose first line is the password for database_url.")
    first_password_file: str | None = _row(
        None, "File whose first line is the password of the first admin; read only at the first start. Unset: random."
    )
    seal_key_file: str | None = _row(
        None, "File of the key for hashes of secrets, the same on all hosts of a database. Unset: in the data folder."
    )
    retention_traffic_days: int = _row(30, "Days to keep traffic records; 0 keeps them forever.")
    retention_alerts_days: int = _row(90, "Days to keep closed alerts; 0 keeps them forever.")
    retention_audit_days: int = _row(365, "Days to keep audit events; 0 keeps them forever. The chain still verifies.")
    audit_sync: Literal["interval", "always"] = _row(
        "interval",
        "When to sync a clean chat to disk: interval, within 0.1 s after the answer (longer if the disk is slow), or "
        "always, before the answer.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = _row("info", "Lowest level to log.")
    upstream_url: str | None = _row(
        None, "Base URL of the OpenAI-compatible upstream, including /v1. Unset: echo.", group="Models"
    )
    upstream_api_key: str | None = _row(None, "API key to send to the upstream.", secret=True)
    upstream_ca_file: str | None = _row(None, "Certificates (PEM) to trust for the upstream instead of the host's.")
    upstream_models: tuple[str, ...] = _row((), "Models to list, comma-separated; empty asks the upstream.")
    upstream_connect_seconds: float = _row(5.0, "Seconds to wait for a connection to the upstream.")
    upstream_first_byte_seconds: float = _row(600.0, "Seconds to wait for the first byte of the upstream's answer.")
    upstream_total_seconds: float = _row(600.0, "Seconds to wait for the complete answer of the upstream.")
    upstream_attempts_seconds: float = _row(600.0, "Seconds for all attempts at one prompt, across all providers.")
    upstream_reply_bytes: int = _row(16 * _BYTES, "Maximum size of an upstream answer, before and after decompression.")
    provider_key_env: tuple[str, ...] = _row(
        (PROVIDER_VARIABLES,),
        "Variables that env:NAME may name as a provider's API key, comma-separated; * ends a prefix.",
    )
    provider_key_dirs: tuple[str, ...] = _row(
        (), "Folders whose files file:/PATH may name as a provider's API key, comma-separated; empty allows none."
    )
    prices: str | None = _row(None, "Price file (JSON) that overrides the built-in prices.")
    budget_reply_tokens: int = _row(
        16_384, "Tokens to reserve for each choice when neither the request nor the price table sets a limit."
    )
    rules: str | None = _row(None, "Rule file to use instead of the built-in rules.", group="Shield")
    rules_extra: tuple[str, ...] = _row(
        (), "Rule files of your own, or folders of them, to use on top of the other rules, comma-separated."
    )
    shield_mode: Literal["block", "observe"] = _row("block", "Whether a BLOCK verdict is enforced or only recorded.")
    unscannable: Literal["allow", "review", "block"] = _row(
        "allow", "What to do with parts that the shield cannot scan: images, audio, files. The gateway records each."
    )
    outbound_action: Literal["block", "redact"] = _row(
        "block", "Whether a BLOCK verdict on a reply withholds the reply or masks the matches."
    )
    outbound_stream: Literal["held", "whole"] = _row(
        "held", "Whether a streamed reply leaves while it grows, as far as it is settled, or only at its end."
    )
    tool_injection: bool = _row(True, "Whether to scan tool descriptions and schemas for injection.")
    scan_paths: tuple[str, ...] = _row(
        (), "Folders whose files a security scan may read, comma-separated; empty allows none."
    )
    max_text_chars: int = _row(MAX_TEXT_CHARS, "Maximum length of a scanned text, in code points.", group="Limits")
    max_chat_chars: int = _row(MAX_CHAT_CHARS, "Maximum total length of all texts in one chat request, in code points.")
    max_messages: int = _row(2_000, "Maximum number of messages in one chat request.")
    max_chat_body_bytes: int = _row(16 * _BYTES, "Maximum body size of a chat request.")
    max_scan_body_bytes: int = _row(4 * _BYTES, "Maximum body size of a scan request.")
    max_body_bytes: int = _row(1 * _BYTES, "Maximum body size of any other request.")
    max_requests_in_work: int = _row(
        2_048, "Requests that a process handles at once on one path; it refuses further ones with 503."
    )
    max_wait_seconds: float = _row(2.0, "Seconds that a request may queue before it gets 503.")
    mcp_enabled: bool = _row(
        False, "Whether `serve` also serves MCP over HTTP, on 127.0.0.1.", env="MCP_ENABLED", group="MCP over HTTP"
    )
    mcp_port: int = _row(5002, "Port for MCP over HTTP; 0 picks a free one.", env="MCP_PORT")
    mcp_api_key: str | None = _row(
        None, "Key that MCP over HTTP requires, at least 16 characters.", env="MCP_API_KEY", secret=True
    )
    # No settings: where each value came from, and what in the environment was not understood.
    sources: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    warnings: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def has_server(self) -> bool:
        """Whether the database is on a PostgreSQL server."""
        return (self.database_url or "").startswith(("postgresql:", "postgres:"))


def rows() -> tuple[Field[typing.Any], ...]:
    """Return one field a setting; its metadata holds `about`, `env`, `secret` and `group`."""
    return tuple(row for row in fields(Settings) if row.metadata)


def variable(row: Field[typing.Any]) -> str:
    """Return the environment variable of a setting."""
    return row.metadata["env"] or f"GATEWAY_{row.name.upper()}"


def named(name: str) -> str:
    """Return what a message calls a setting: its name and its variable."""
    return f"{name} ({next(variable(row) for row in rows() if row.name == name)})"


def flag(row: Field[typing.Any]) -> str:
    """Return the command-line flag of a setting."""
    return "--" + row.name.replace("_", "-")


def own_variables() -> frozenset[str]:
    """Return the names of the environment variables that the gateway reads for itself."""
    return frozenset(variable(row) for row in rows()).union(KNOWN_ELSEWHERE)


def is_provider_variable(name: str, allowed: tuple[str, ...]) -> bool:
    """Tell whether `provider_key_env`, given as `allowed`, lets a variable hold the key of a provider."""
    return any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in allowed)


def variable_text(name: str) -> str | None:
    """Return what an environment variable holds, None for nothing. The caller checks whether it may be read."""
    return os.environ.get(name) or None


def load(flags: Mapping[str, str], environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. flags: text by setting name, plus `config` for the TOML file.

    Raises:
        SetupError: an unknown key, a value of the wrong type or out of range, or values that do not go together.
    """
    environ = os.environ if environ is None else environ
    path = flags.get("config") or environ.get("GATEWAY_CONFIG")
    table = _read_toml(path) if path else {}
    hints = typing.get_type_hints(Settings)
    values: dict[str, object] = {}
    sources: dict[str, str] = {}
    for row in rows():
        name, env = row.name, variable(row)
        raw: object
        if name in flags:
            raw, source, where = flags[name], "flag", flag(row)
        elif environ.get(env):
            raw, source, where = environ[env], "environment", env
        elif name in table:
            raw, source, where = table[name], f"file {path}", name
        else:
            values[name], sources[name] = row.default, "default"
            continue
        values[name], sources[name] = _convert(raw, hints[name], where), source
    if not values["data_dir"]:
        values["data_dir"], sources["data_dir"] = _default_data_dir(environ)
    settings = Settings(**typing.cast(typing.Any, values | {"sources": sources}))
    _check(settings)
    return replace(settings, warnings=_strange(environ, settings.provider_key_env))


def _convert(raw: object, kind: object, where: str) -> object:
    """Turn text of a flag or variable, or a TOML value, into the setting's type. where: what to call it in an error."""
    if isinstance(kind, types.UnionType):
        kind = next(part for part in typing.get_args(kind) if part is not type(None))
    choices = typing.get_args(kind) if typing.get_origin(kind) is Literal else ()
    try:
        value = _value(raw, str if choices else kind)
    except (ValueError, KeyError):
        if str(raw).startswith(_LINKS):
            raise SetupError(
                f"{where} is {raw}, which Kubernetes sets for a Service of that name: set enableServiceLinks: false "
                "in the pod's spec, or give the Service another name",
                param=where,
            ) from None
        name = {int: "a whole number", float: "a number", bool: "true or false"}.get(typing.cast(type, kind), "text")
        raise SetupError(f"{where} must be {name}", param=where) from None
    if choices and value not in choices:
        raise SetupError(f"{where} must be one of {', '.join(choices)}", param=where)
    return value


def _value(raw: object, kind: object) -> object:
    if typing.get_origin(kind) is tuple:
        parts = raw.split(",") if isinstance(raw, str) else raw
        if isinstance(parts, list) and all(isinstance(part, str) for part in parts):
            return tuple(part.strip() for part in parts if part.strip())
    if kind is bool:
        return _TRUTH[str(raw).lower()]
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        raise ValueError
    if kind is int and (isinstance(raw, int) or (isinstance(raw, str) and raw.isascii() and raw.isdigit())):
        return int(raw)
    if kind is float and 0 <= (value := float(raw)) < 1e9:
        return value
    if kind is str and isinstance(raw, str):
        return raw
    raise ValueError


def _strange(environ: Mapping[str, str], provider_keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return a warning for the variables that look like settings and are none. A misspelt setting is an error."""
    known = own_variables()
    strange = sorted(name for name in environ.keys() - known - {*provider_keys} if name.startswith(OURS))
    for name in strange:
        if meant := nearest(name, known):
            raise SetupError(f"{name} is not a setting. Did you mean {meant}? Correct or unset it.", param=name)
    keys = (*provider_keys, PROVIDER_VARIABLES)
    strange = [name for name in strange if not name.startswith("RBAC_") and not is_provider_variable(name, keys)]
    return (f"not settings of this version: {', '.join(strange)}",) if strange else ()


def bound_to(settings: Settings, host: str, port: int) -> Settings:
    """Return the settings with the address of the socket that the server was given.

    Raises:
        SetupError: other settings do not allow that address.
    """
    bound = replace(settings, host=host, port=port)
    _check(bound)
    return bound


def given_sockets() -> Mapping[str, int]:
    """Return file descriptors of listening sockets by name, as systemd hands them over (sd_listen_fds(3)).

    A name is what the socket unit calls it (FileDescriptorName=); the first without one is "". Empty: none was given.

    Raises:
        SetupError: the variables contradict each other.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return {}
    count = os.environ.get("LISTEN_FDS", "")
    if not (count.isascii() and count.isdigit() and 1 <= int(count) <= _MOST_SOCKETS):
        raise SetupError(f"LISTEN_FDS must be 1 to {_MOST_SOCKETS}: one socket for the API, one named mcp for MCP")
    names = os.environ.get("LISTEN_FDNAMES", "").split(":")
    names += [""] * int(count)
    found = {"mcp" if name == "mcp" else "": _FIRST_SOCKET + i for i, name in enumerate(names[: int(count)])}
    if len(found) < int(count):
        raise SetupError("two sockets have the same purpose: name the socket for MCP mcp (FileDescriptorName=)")
    return found


def is_loopback(host: str) -> bool:
    """Tell whether an address or name can only be reached from this host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def parse_toml(raw: bytes) -> dict[str, object]:
    """Read TOML.

    Raises:
        ValueError: it is not TOML.
    """
    try:
        return tomllib.loads(raw.decode())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _read_toml(path: str) -> dict[str, object]:
    try:
        with open(path, "rb") as file:
            table = parse_toml(file.read())
    except OSError as error:
        raise SetupError(f"cannot read the settings file {path}: {error.strerror}") from error
    except ValueError as error:
        raise SetupError(f"the settings file {path} is not TOML: {error}") from error
    known = {row.name for row in rows()}
    for name in table:
        if name not in known:
            meant = hint(name, known) or " `serve --show-settings` lists all settings."
            raise SetupError(f"{path} has an unknown setting {name!r}.{meant}", param=name)
    return table


def _default_data_dir(environ: Mapping[str, str]) -> tuple[str, str]:
    if environ.get("STATE_DIRECTORY"):
        return environ["STATE_DIRECTORY"].split(":")[0], "environment STATE_DIRECTORY"
    if environ.get("XDG_DATA_HOME"):
        return os.path.join(environ["XDG_DATA_HOME"], "gateway"), "environment XDG_DATA_HOME"
    return os.path.join(os.path.expanduser("~"), ".local", "share", "gateway"), "default"


def _check(settings: Settings) -> None:
    for name in ("port", "mcp_port"):
        if not 0 <= getattr(settings, name) <= 65535:
            raise SetupError(f"{name} must be 0 to 65535", param=name)
    if not 1 <= settings.workers <= MOST_WORKERS:
        raise SetupError(f"workers must be 1 to {MOST_WORKERS}", param="workers")
    if settings.data_dir == ":memory:" and (settings.workers > 1 or settings.has_server):
        raise SetupError("several workers and database_url need a data folder, not :memory:", param="data_dir")
    if not settings.has_server and settings.database_url not in (None, "", "sqlite", "sqlite:", "sqlite://"):
        raise SetupError("database_url must begin with postgresql://, or be unset for SQLite", param="database_url")
    for row in rows():
        value = getattr(settings, row.name)
        if row.name.startswith(("max_", "upstream_", "budget_")) and isinstance(value, int | float) and value <= 0:
            raise SetupError(f"{row.name} must be greater than 0", param=row.name)
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise SetupError("tls_cert and tls_key go together: set both or neither", param="tls_cert")
    if settings.upstream_url and not settings.upstream_url.startswith(("http://", "https://")):
        raise SetupError("upstream_url must begin with http:// or https://", param="upstream_url")
    for name in settings.provider_key_env:
        if not name or not _VARIABLES.fullmatch(name):
            raise SetupError(
                f"provider_key_env: {name} is neither a variable name nor a prefix that ends in *",
                param="provider_key_env",
            )
    for folder in settings.provider_key_dirs:
        if not os.path.isabs(folder):
            raise SetupError(f"provider_key_dirs: {folder} is not an absolute path", param="provider_key_dirs")
    for network in settings.trusted_proxies:
        try:
            ipaddress.ip_network(network, strict=False)
        except ValueError:
            raise SetupError(f"trusted_proxies: {network} is not a network", param="trusted_proxies") from None
    for origin in settings.cors_origins:
        if _ORIGIN.fullmatch(origin) is None or origin.endswith(_DEFAULT_PORTS.get(origin.partition(":")[0], "*")):
            raise SetupError(
                f"cors_origins: {origin} must be an origin as browsers send it, such as https://app.example.com or "
                "http://localhost:3000; * is not allowed, because any web page could then use a key that it obtains",
                param="cors_origins",
            )
    if not settings.rbac_enabled and not is_loopback(settings.host):
        raise SetupError(
            f"listening on {settings.host} needs RBAC_ENABLED=true: without it the internal API requires no sign-in",
            param="host",
        )
