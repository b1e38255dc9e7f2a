"""The archive's first file: checks every member against the manifest, then runs the rest of the start, `_boot.py`."""

import _signal
import gc
import sys

gc.disable()  # while it is loaded nothing is garbage; the command line turns it on again

# Ctrl-C while it loads ends it at once, without a stack of what was being imported; `__main__` gives Python its turn.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
# A hang-up tells a server to reload: it waits until there is one that listens, and does not end it before.
if sys.argv[1:2] == ["serve"] and hasattr(_signal, "SIGHUP"):
    _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGHUP])
if sys.version_info < (3, 11):
    sys.exit("gateway needs Python 3.11 or newer; this is %d.%d" % sys.version_info[:2])
if sys.argv[1:] == ["--version"]:
    _failed = 0
    try:
        sys.stdout.write("gateway @VERSION@\n")
        sys.stdout.flush()
    except (OSError, AttributeError):
        _failed = 2
        sys.stderr.write("gateway: the version cannot be written to standard output.\n")
    sys.modules["os"]._exit(_failed)  # nothing is open, so the interpreter need not take itself down


def _start(zip):
    # First of all: what is planted on the host must not be imported. Only the standard library stays on the path.
    os = sys.modules["os"]
    lib = os.__file__.rpartition(os.sep)[0]
    base = "%s/%s/python%d.%d" % (sys.base_exec_prefix, sys.platlibdir, *sys.version_info[:2])
    own = (lib, lib + "/lib-dynload", base + "/lib-dynload", sys.base_prefix + "\\DLLs")
    sys.path[:] = [path for path in sys.path if path in own]
    import marshal
    from zlib import decompress

    hashes, pack, boot = _checked(zip, os, "_pyc/%s.pack" % sys.implementation.cache_tag, "_boot.py")
    whole = memoryview(pack)  # whose slices are no copies
    if pack[:4] == sys.modules["_frozen_importlib_external"].MAGIC_NUMBER:
        code = marshal.loads(decompress(whole[12 : 12 + int.from_bytes(pack[8:12], "little")], -15))
    else:  # no byte code for this Python: everything is compiled from source
        pack, code = b"", compile(boot, "_boot.py", "exec")
    names = {}
    exec(code, names)
    names["install"](zip, pack, hashes)


def _checked(zip, os, *wanted):
    """Compare every member with the manifest. Return the SHA-256 of each by its name, then the bytes of those wanted.

    Of the manifest itself, the zip's CRC-32 and the form are checked: whoever rewrites both can write what they like.
    """
    import json
    import zipimport
    from hashlib import sha256
    from zlib import crc32, error

    def read(name):
        try:
            return zip.get_data(os.path.join(zip.archive, name))
        except (ImportError, OSError, EOFError, ValueError, error):
            raise ImportError("%s cannot be read" % name) from None

    files = zipimport._zip_directory_cache[zip.archive]
    names = {name.replace(os.sep, "/"): entry for name, entry in files.items() if entry}  # None: a folder
    manifest = "META/manifest.json"
    told = read(manifest)
    if crc32(told) != names.pop(manifest)[7]:
        raise ImportError("%s was changed" % manifest)
    try:
        hashes = dict(json.loads(told)["sha256"])
    except (ValueError, LookupError, TypeError):
        raise ImportError("%s is not a manifest" % manifest) from None
    kept = {}
    for name in sorted(names.keys() | hashes.keys()):
        data = read(name)
        if sha256(data).hexdigest() != hashes.get(name):
            raise ImportError("%s does not match the manifest" % name)
        if name in wanted:
            kept[name] = data
    hashes[manifest] = sha256(told).hexdigest()
    return (hashes, *(kept.get(name, b"") for name in wanted))


try:
    _start(__loader__)
except (ImportError, OSError, ValueError, EOFError, KeyError, TypeError) as _error:
    sys.stderr.write("gateway: the archive is damaged, so it does not start (%s). Get a fresh copy.\n" % _error)
    sys.exit(2)
del _start

from gateway.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
