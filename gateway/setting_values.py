"""Turn text or a TOML value into the value of a setting. Pure."""

import types
import typing

from gateway.errors import SetupError

_TRUTH = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_LINKS = ("tcp://", "udp://", "sctp://")  # what Kubernetes writes into NAME_PORT for each Service


def convert(raw: object, hint: object, choices: tuple[str, ...], where: str) -> object:
    """Turn text of a flag or variable, or a TOML value, into the setting's type. where: what to call it in an error.

    Raises:
        SetupError: it is not of the type, or none of the choices.
    """
    if isinstance(hint, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    try:
        if typing.get_origin(hint) is tuple:
            parts = raw.split(",") if isinstance(raw, str) else raw
            if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
                raise ValueError
            return tuple(part.strip() for part in parts if part.strip())
        value = _scalar(raw, hint)
    except (ValueError, KeyError):
        if str(raw).startswith(_LINKS):
            raise SetupError(
                f"{where} is {raw}, which Kubernetes sets for a Service of that name: set enableServiceLinks: false "
                "in the pod's spec, or give the Service another name",
                param=where,
            ) from None
        name = {int: "a whole number", float: "a number", bool: "true or false"}.get(typing.cast(type, hint), "text")
        raise SetupError(f"{where} must be {name}", param=where) from None
    if choices and value not in choices:
        raise SetupError(f"{where} must be one of {', '.join(choices)}", param=where)
    return value


def _scalar(raw: object, hint: object) -> object:
    if hint is bool:
        return _TRUTH[str(raw).lower()]
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        raise ValueError
    if hint is int and (isinstance(raw, int) or (isinstance(raw, str) and raw.isascii() and raw.isdigit())):
        return int(raw)
    if hint is float and 0 <= (value := float(raw)) < 1e9:
        return value
    if hint is str and isinstance(raw, str):
        return raw
    raise ValueError
