"""Host names: canonical form, parent domains, and the hosts that a text links to. Pure: uses no resolver."""

import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

MAX_HOST_CHARS = 253
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
# A browser accepts backslashes for slashes, and http without any (WHATWG URL, section 4.4).
_LINK = re.compile(r"(?:[a-z][a-z0-9+.-]{1,30}:[/\\]{2,}|https?:[/\\]*)([^\s/\\?#\"'<>`|^{}]{1,2000})")
_BARE_LINK = re.compile(r"(?<![^\s\"'(<\[=])(?:[/\\]{2}|(?=www\.))([^\s/\\?#\"'<>`|^{}()\[\],;]{1,2000})")
_NAMES = re.compile(r"[a-z0-9_.-]+")
_WIDE_NAMES = re.compile(r"[\w.-]+")
_DOTS = str.maketrans("。．｡", "...")


def read_domain(text: str) -> str | None:
    """Return a domain, with or without ``*.``, in canonical form. None: the text is not a domain."""
    is_wildcard = text.startswith("*.")
    name = host_name(text.removeprefix("*."))
    if name is None or "." not in name and name != "localhost":
        return None
    return f"*.{name}" if is_wildcard else name


def host_name(text: str) -> str | None:
    """Return a host name in lower case, in ASCII (IDNA) and without a trailing dot. None: it is no host name."""
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
    """Yield the name and its parent domains, the longest first."""
    while name:
        yield name
        name = name.partition(".")[2]


def linked_hosts(text: str) -> set[str]:
    """Return the hosts that `text` links to by a URL, by ``//host`` or by ``www.host``."""
    folded = _folded(text)
    hosts = {_authority(match[1]) for match in _LINK.finditer(folded)}
    bare = {_authority(match[1]) for match in _BARE_LINK.finditer(folded)}
    return {name for name in hosts if name} | {name for name in bare if name and "." in name}


def named_hosts(text: str) -> set[str]:
    """Return every possible host in `text`: those it links to, and each name with a dot in it."""
    folded = _folded(text)
    words = {*_NAMES.findall(folded), *_WIDE_NAMES.findall(folded)}
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
    """Return the host of a URL's authority, which stands between the last ``@`` and the port."""
    host = unquote(text).rpartition("@")[2]
    if host.startswith("["):
        return None
    return host_name(host.partition(":")[0].rstrip(".,;:!)]*_~"))
