"""The first file of the archive. It checks every member against the manifest, then starts the gateway.

Python 3.6 must be able to parse this file, so that an old Python ends with one clear line.
"""

import signal
import sys

# Ctrl-C during the imports ends the process at once and without a traceback; `gateway.__main__` restores the handler.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
# SIGHUP asks a server to reload. It waits until the server can obey; its default action would end the process.
if sys.argv[1:2] == ["serve"] and hasattr(signal, "SIGHUP"):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
if sys.version_info < (3, 11):
    sys.exit("gateway needs Python 3.11 or newer; this is %d.%d" % sys.version_info[:2])
if sys.argv[1:] == ["--version"]:
    try:
        sys.stdout.write("gateway @VERSION@\n")
        sys.stdout.flush()
    except (OSError, AttributeError):
        sys.stderr.write("gateway: the version cannot be written to standard output.\n")
        sys.modules["os"]._exit(2)
    sys.exit(0)


def _isolate():
    """Keep packages of the host out: only the standard library and its own importers stay."""
    import os
    from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

    lib = os.path.dirname(os.__file__)
    base = "%s/%s/python%d.%d" % (sys.base_exec_prefix, sys.platlibdir, *sys.version_info[:2])
    own = (lib, lib + "/lib-dynload", base + "/lib-dynload", sys.base_prefix + "\\DLLs")
    sys.path[:] = [path for path in sys.path if path in own]
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter, PathFinder]


def _check(path):
    """Compare every member with its SHA-256 in the manifest, and return the manifest.

    Raises:
        ValueError: a member is damaged, missing or added, or the manifest is not valid.
    """
    import hashlib
    import json
    import zipfile

    with zipfile.ZipFile(path) as archive:

        def sha256(name):
            digest = hashlib.sha256()
            try:
                with archive.open(name) as member:
                    for piece in iter(lambda: member.read(65536), b""):
                        digest.update(piece)
            except Exception as error:  # zipfile and zlib raise many kinds for damaged data
                raise ValueError("%s cannot be read" % name) from error
            return digest.hexdigest()

        sha256("META/manifest.json")  # zipfile checks its CRC-32
        manifest = json.loads(archive.read("META/manifest.json"))
        hashes = manifest["sha256"]
        names = set(archive.namelist()) - {"META/manifest.json"}
        own = "_" + sys.implementation.cache_tag + "/"
        for name in sorted(names | hashes.keys()):
            if name.startswith("_cpython-") and not name.startswith(own):
                continue  # byte code of another Python, which this one never loads
            if name not in names or sha256(name) != hashes.get(name):
                raise ValueError("%s does not match the manifest" % name)
        return manifest


def _add_to_path(archive, manifest):
    """Import from the archive: from the byte code of this Python, if there is any, else from the sources."""
    import os
    from importlib.util import MAGIC_NUMBER

    tag = sys.implementation.cache_tag
    is_compiled = manifest["bytecode"].get(tag) == MAGIC_NUMBER.hex()
    sys.path.insert(0, os.path.join(archive, "_" + tag) if is_compiled else archive)
    names = {name.partition("/")[0].partition(".")[0] for name in manifest["sha256"] if name.endswith(".py")}
    for loaded in [name for name in sys.modules if name.partition(".")[0] in names and name != "__main__"]:
        del sys.modules[loaded]  # the host imported a package of this name before


try:
    _isolate()
    _add_to_path(sys.modules["os"].path.abspath(__loader__.archive), _check(__loader__.archive))
except Exception as _error:  # a damaged archive can raise nearly anything
    sys.stderr.write("gateway: the archive is damaged, so it does not start (%s). Get a fresh copy.\n" % _error)
    sys.exit(2)

from gateway.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
