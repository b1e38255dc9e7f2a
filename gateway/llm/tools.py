"""The names of tools in a chat: those a request offers or tells of, and those a reply calls. Pure."""

from collections.abc import Iterator, Mapping

_KINDS = ("function", "custom")


def offered_tools(body: Mapping[str, object]) -> Iterator[str]:
    """Return the tools that a request offers, asks for or says were called. One without a name goes by its type."""
    yield from listed_tools(body)
    for chosen in (body.get("tool_choice"), body.get("function_call")):
        if isinstance(chosen, dict):
            yield from _named(chosen)
            allowed = chosen.get("allowed_tools")
            for holder in (chosen, allowed if isinstance(allowed, dict) else {}):
                for tool in _list(holder.get("tools")):
                    yield from _named(tool)
    for message in _list(body.get("messages")):
        yield from _of_message(message)


def listed_tools(body: Mapping[str, object]) -> Iterator[str]:
    """Return the tools in a request's own list of tools. One without a name goes by its type."""
    for tool in _list(body.get("tools")):
        yield from _named(tool)
    for function in _list(body.get("functions")):
        yield from _name(function)


def called_tools(body: Mapping[str, object]) -> Iterator[str]:
    """Return the tools that a reply calls."""
    for choice in _list(body.get("choices")):
        if isinstance(choice, dict):
            yield from _of_message(choice.get("message"))


def _of_message(message: object) -> Iterator[str]:
    if not isinstance(message, dict):
        return
    for call in _list(message.get("tool_calls")):
        yield from _named(call)
    yield from _name(message.get("function_call"))
    if message.get("role") in ("tool", "function"):
        yield from _name(message)


def _named(tool: object) -> Iterator[str]:
    if not isinstance(tool, dict):
        return
    names = [name for kind in _KINDS for name in _name(tool.get(kind))]
    names.extend(_name(tool))
    if not names and isinstance(kind := tool.get("type"), str) and kind not in (*_KINDS, "allowed_tools"):
        names.append(kind)
    yield from names


def _name(value: object) -> Iterator[str]:
    if isinstance(value, dict) and isinstance(name := value.get("name"), str):
        yield name


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
