"""Names of hosts: their one form, those above them, and those that a text links to. Pure: asks no resolver."""

import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

MAX_HOST_CHARS = 253
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
# What a browser takes for the begin of a link: backslashes count as slashes, and http needs none (WHATWG URL, 4.4).
_LINK = re.compile(r"(?:[a-z][a-z0-9+.-]{1,30}:[/\\]{2,}|https?:[/\\]*)([^\s/\\?#\"'<>`|^{}]{1,2000})")
_BARE_LINK = re.compile(r"(?<![^\s\"'(<\[=])(?:[/\\]{2}|(?=www\.))([^\s/\\?#\"'<>`|^{}()\[\],;]{1,2000})")
_NAMES = re.compile(r"[a-z0-9_.-]+")
_WIDE_NAMES = re.compile(r"[\w.-]+")
_DOTS = str.maketrans("。．｡", "...")


def read_domain(text: str) -> str | None:
    """Return a domain, perhaps with ``*.`` before it, in its one form; None if it is none."""
    is_below = text.startswith("*.")
    name = host_name(text.removeprefix("*."))
    if name is None or "." not in name and name != "localhost":
        return None
    return f"*.{name}" if is_below else name


def host_name(text: str) -> str | None:
    """Return the name of a host in lower case, in ASCII (IDNA) and without a dot at its end; None if it is none."""
    name = unicodedata.normalize("NFKC", text.translate(_DOTS)).casefold().strip(".")
    if not name.isascii():
        try:
            name = name.encode("idna").decode("ascii")
        except UnicodeError:
            return None
    if not name or len(name) > MAX_HOST_CHARS or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        return None
    return name


def suffixes(name: str) -> Iterator[str]:
    """Return the name and all domains it is in, the longest first."""
    while name:
        yield name
        name = name.partition(".")[2]


def linked_hosts(text: str) -> set[str]:
    """Return the hosts that `text` links to: of URLs, of ``//host`` and of ``www.host``."""
    folded = _folded(text)
    found: set[str] = set()
    for matched in _LINK.finditer(folded):
        if name := _authority(matched[1]):
            found.add(name)
    for matched in _BARE_LINK.finditer(folded):
        if (name := _authority(matched[1])) and "." in name:
            found.add(name)
    return found


def named_hosts(text: str) -> set[str]:
    """Return whatever of `text` may be read as a host: those it links to, and every name with a dot in it."""
    folded = _folded(text)
    words = set(_NAMES.findall(folded))
    if not folded.isascii():
        words.update(_WIDE_NAMES.findall(folded))
    names = (host_name(word[-MAX_HOST_CHARS - 2 :].strip(".-_")) for word in words if "." in word)
    return linked_hosts(text) | {name for name in names if name and "." in name}


def _folded(text: str) -> str:
    if "%" in text:
        text = f"{text}\n{unquote(text)}"
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text.translate(_DOTS)).casefold()
    return "".join(sign for sign in folded if unicodedata.category(sign) != "Cf")


def _authority(text: str) -> str | None:
    """Return the host of a URL's authority: what is after the last ``@`` and before the port."""
    host = unquote(text).rpartition("@")[2]
    if host.startswith("["):
        return None
    return host_name(host.partition(":")[0].rstrip(".,;:!)]*_~"))
