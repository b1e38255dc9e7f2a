"""The archive's first file: byte code from the pack of this Python, else sources. Small: compiled at each start."""

import sys

if sys.version_info < (3, 11):
    sys.exit("gateway needs Python 3.11 or newer; this is %d.%d" % sys.version_info[:2])
if sys.argv[1:] == ["--version"]:
    sys.stdout.write("gateway @VERSION@\n")
    sys.exit(0)

import marshal
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER
from zlib import decompress

_zip = __loader__
_archive = _zip.archive
# A package planted on the host must not be imported: only the archive and the standard library stay.
_own = (sys.base_prefix, sys.base_exec_prefix)
sys.path[:] = [_archive] + [p for p in sys.path[1:] if p.startswith(_own) and "-packages" not in p]


class _Pack:
    """Finder and loader over one byte-code pack held in memory (layout: build_zipapp.make_pack)."""

    def __init__(self, blob):
        size = int.from_bytes(blob[4:8], "little")
        self.index = marshal.loads(blob[8 : 8 + size])
        self.codes = memoryview(blob)[8 + size :]

    def find_spec(self, name, path=None, target=None):
        entry = self.index.get(name)
        if entry is None:
            return None
        spec = ModuleSpec(name, self, origin=_archive + "/" + entry[0], is_package=entry[1])
        if entry[1]:
            spec.submodule_search_locations.append(spec.origin.rpartition("/")[0])
        spec.has_location = True
        return spec

    def create_module(self, spec):
        return None

    def get_code(self, name):
        entry = self.index[name]
        return marshal.loads(decompress(self.codes[entry[2] : entry[3]]))

    def exec_module(self, module):
        exec(self.get_code(module.__name__), module.__dict__)

    def get_source(self, name):
        return self.get_data(_archive + "/" + self.index[name][0]).decode("utf-8")

    def is_package(self, name):
        return self.index[name][1]

    def get_data(self, path):
        return _zip.get_data(path)


try:
    _blob = _zip.get_data(_archive + "/_pyc/" + sys.implementation.cache_tag + ".pack")
except OSError:
    _blob = b""
if _blob[:4] == MAGIC_NUMBER:
    sys.meta_path.insert(0, _Pack(_blob))
del _blob

from gateway.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
