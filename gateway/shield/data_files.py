"""The data files of the shield: the only place that reads them, from a folder or from an archive.

A file is read once and stays in memory, compressed, so a server that has called `read_all` no longer needs its archive.
"""

import functools
import os
import zlib

RULES_FILE = "rules.json"
PLANS_FILE = "rules.plans"
_HERE = os.path.dirname(os.path.abspath(__file__))


def read(name: str) -> bytes:
    """Return a file, named from the root of the program such as ``rules.json``.

    Raises:
        OSError: the file does not exist.
    """
    return zlib.decompress(compressed(name))


@functools.cache
def compressed(name: str) -> bytes:
    """Read a file into memory and return it as zlib compresses it.

    Raises:
        OSError: the file does not exist.
    """
    return zlib.compress(read_once(name), 1)


def read_once(name: str) -> bytes:
    """Return a file without keeping it.

    Raises:
        OSError: the file does not exist.
    """
    # zipimport and the loader of a folder both read files beside the modules that they load.
    loader = globals()["__loader__"]
    package = os.path.dirname(_HERE)
    root = getattr(loader, "archive", None) or os.path.dirname(package)
    if "/" not in name and not is_in_archive() and os.path.exists(os.path.join(package, name)):
        root = package  # an installed package has the rules inside
    data: bytes = loader.get_data(os.path.join(root, *name.split("/")))
    return data


def is_in_archive() -> bool:
    """Return whether the shield runs from an archive, where nobody can edit the rules beside their plans."""
    return hasattr(globals()["__loader__"], "archive")
