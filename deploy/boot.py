"""The finder that serves the archive's modules and data from memory, so that the file is not needed after the start.

Byte code comes from the pack of this Python (layout: gateway/cli/packs.py), held in memory as it was read; without a
pack the sources are compiled. Data files are read at once and kept compressed. Sources, which only tracebacks want, are
read through a descriptor that stays open: the file may be renamed over or deleted meanwhile. The launcher has checked
every member against the manifest. A member that is read again is checked again, so a file that was overwritten in place
is an error and never another version's bytes. So are the compiled regexes read, by those who have a digest of each and
make anew what is not what it was.

Both are zips within the zip: Python reads the names of all members at each start, one after the other. That of the
sources is packed as a whole, and unpacked when the first of them is asked for.
"""

import _sre
import dataclasses
import json
import marshal
import os
import re
import sys
import zipimport
from _frozen_importlib import BuiltinImporter, FrozenImporter, ModuleSpec
from _frozen_importlib_external import PathFinder
from _thread import RLock
from hashlib import sha256
from types import ModuleType
from zlib import crc32, decompress, decompressobj, error

SOURCES, DATA = "sources.zip", "data.zip"
KEPT = ("rules.json", "rules.plans")
LATE = "gateway."
SHARED = os.path.join("_pyc", "shared.pack")
MARK = b"\xf5\xf6\xf7\xf8"
# What the import machinery looks at.
IMPORTERS = frozenset(
    ("__spec__", "__loader__", "__path__", "__name__", "__package__", "__file__", "__cached__", "__class__")
)
RUNNING = RLock()


class Waiting(ModuleType):
    """A module of the gateway, or h11, that is run when somebody first asks for something in it.

    `from gateway.domain.keys import NewKey` asks at once. `from gateway.services import reports` does not: the module
    costs nothing until it is used. Until it has been run, only the thread that runs it sees what is in it.
    """

    def __getattribute__(self, name):
        own = object.__getattribute__
        if name in IMPORTERS:
            return own(self, name)
        with RUNNING:
            if is_asleep(self):
                package = sys.modules.get(own(self, "__name__").rpartition(".")[0])
                if is_asleep(package):
                    package.__dict__  # noqa: B018 - which runs it: as in any import, before what is in it
            if is_asleep(self):  # still, though its package may have asked for it
                self.__waiting__ = True
                try:
                    own(self, "__loader__").run(self)
                except BaseException:
                    del self.__waiting__
                    raise
                del self.__waiting__
                self.__class__ = ModuleType
            return own(self, name)


def is_asleep(module):
    return type(module) is Waiting and "__waiting__" not in object.__getattribute__(module, "__dict__")


class Within:
    """A zip that is a member of the archive. raw: all of it."""

    def __init__(self, raw):
        end = len(raw) - 22  # it has no comment
        begin = number(raw, end + 16, 4)
        self._raw, self._directory = raw, raw[begin : begin + number(raw, end + 12, 4)]

    def entries(self):
        """Yield the name of each file and where its entry in the directory begins."""
        directory, place = self._directory, 0
        while place < len(directory):
            end = place + 46 + number(directory, place + 28, 2)
            yield directory[place + 46 : end].decode(), place
            place = end + number(directory, place + 30, 2) + number(directory, place + 32, 2)

    def get(self, name):
        """Return how a file is packed and its packed bytes, or None when there is none."""
        wanted, directory, found = name.encode(), self._directory, -1
        while (found := directory.find(wanted, found + 1)) >= 0:
            place = found - 46  # where the entry begins if this is a name, and not a part of one
            if (
                place >= 0
                and directory.startswith(b"PK\1\2", place)
                and number(directory, place + 28, 2) == len(wanted)
            ):
                offset = number(directory, place + 42, 4)
                begin = offset + 30 + number(self._raw, offset + 26, 2) + number(self._raw, offset + 28, 2)
                packed = self._raw[begin : begin + number(directory, place + 20, 4)]
                return number(directory, place + 10, 2), packed
        return None


class Finder:
    """Finder and loader of everything in the archive. archive: its path. descriptor: the open file, or None.

    hashes: the SHA-256 of each member by its name.
    """

    def __init__(self, reader, pack, hashes):
        self.archive = os.path.abspath(reader.archive)
        # {name: (path, method, packed bytes, bytes, offset of the local header, time, date, crc)}
        self._members = dict(zipimport._zip_directory_cache[reader.archive])
        self.descriptor = os.open(reader.archive, os.O_RDONLY) if hasattr(os, "pread") else None
        self._hashes, self._sha256, self._methods, self._blocks = hashes, "", {}, {}
        self._kept = {name: self._raw(name) for name in KEPT if name in self._members}
        self._data, self._sources = Within(self._checked(DATA, 0)), None
        if pack:
            begin = 16 + int.from_bytes(pack[8:12], "little")
            end = begin + int.from_bytes(pack[begin - 4 : begin], "little")
            index = json.loads(decompress(pack[begin:end], -15))
            self._index = index["modules"]
            self._codes = memoryview(pack)[end:]
            self._texts = memoryview(self.get_data(SHARED))
            self._words = decompress(self._texts[slice(*index["words"])], -15)
            self._blocks = {
                number: (self._texts[place[2] : place[3]], place[4], self._codes[place[0] : place[1]])
                for number, place in enumerate(index["blocks"], 1)
            }
            self._unpacked = 0, b"", b""
            dataclasses.exec = self.write_methods  # the module looks `exec` up among its own names first
            self._regexes = re._cache if index["engine"] == [_sre.MAGIC, _sre.CODESIZE] else None
        else:
            names = [name for within in (self._data, self.sources()) for name, _ in within.entries()]
            names = [name for name in names if name.endswith(".py")]
            self._index = {module_of(name): (name.endswith("/__init__.py"), 0, 0, 0, 0) for name in names}

    def find_spec(self, name, path=None, target=None):
        entry = self._index.get(name)
        if entry is None:
            return None
        spec = ModuleSpec(name, self, origin=self.archive + os.sep + self._file(name), is_package=bool(entry[0]))
        if entry[0]:
            spec.submodule_search_locations.append(os.path.dirname(spec.origin))
        return spec

    def create_module(self, spec):
        is_late = spec.name == "h11" or spec.name.startswith(LATE)
        module = Waiting(spec.name) if is_late else ModuleType(spec.name)
        module.__file__ = spec.origin  # of a spec that has a location, the name of a cache would be worked out as well
        return module

    def get_code(self, name):
        _, begin, end, block, *place = self._index[name]
        made = None
        if block:
            frames, codes = self.unpacked(block)
            made = frames and marshal.loads(joined(frames[begin:end], codes, place))  # noqa: S302 - checked at the start
        elif end:
            packed = b"".join((self._texts[slice(*place)], self._codes[begin:end]))
            made = marshal.loads(decompressobj(-15, self._words).decompress(packed))[-1]  # noqa: S302 - as well
        if made:
            code, methods, regexes = made
            if methods:
                self._methods[name] = dict(zip(methods[::2], methods[1::2], strict=True))
            if regexes and self._regexes is not None:
                self.keep_regexes(regexes)
            return code
        path = self._file(name)
        return compile(self.get_data(self.archive + os.sep + path), path, "exec", dont_inherit=True)

    def unpacked(self, number):
        """Return the frames and the codes of a block, empty in a Python that cannot unpack it. The last is kept."""
        known, *parts = self._unpacked
        if known != number:
            try:
                from _lzma import FORMAT_RAW, LZMADecompressor
            except ImportError:
                return b"", b""
            how = FORMAT_RAW, None, [{"id": 0x21, "dict_size": 1 << 21}]
            frames, size, codes = self._blocks[number]  # the frames of this Python and of those before it
            parts = LZMADecompressor(*how).decompress(frames, size), LZMADecompressor(*how).decompress(codes)
            self._unpacked = number, *parts
        return parts

    def exec_module(self, module):
        if type(module) is not Waiting:
            self.run(module)

    def run(self, module):
        try:
            exec(self.get_code(module.__name__), module.__dict__)  # noqa: S102 - what a loader does
        finally:
            self._methods.pop(module.__name__, None)

    def write_methods(self, text, names=None, places=None):
        """Do what `exec` does for `dataclasses`, with the byte code of the pack where it has that of the text.

        What is not known, such as another Python's text, is compiled as ever.
        """
        known = self._methods.get(names["__name__"]) if names else None
        exec((known or {}).get(crc32(text.encode()), text), names, places)  # noqa: S102 - as the original

    def let_go(self):
        """Let go of the block that was unpacked last, and of the sources: what is asked for together has been run."""
        self._unpacked, self._sources = (0, b"", b""), None

    def forget(self):
        """Let go of the byte code of modules that have been run: nobody asks for it again."""
        kept, blocks = bytearray(), set()
        for name, entry in self._index.items():
            module = sys.modules.get(name)
            is_wanted = entry[2] and (module is None or type(module) is Waiting)
            if is_wanted and entry[3]:
                blocks.add(entry[3])
            elif is_wanted:
                begin = len(kept)
                kept += self._texts[entry[4] : entry[5]]
                kept += self._codes[entry[1] : entry[2]]
                entry[1:] = begin, len(kept), 0, 0, 0
            elif entry[2]:
                entry[1:] = 0, 0, 0, 0
        self._blocks = {
            number: (bytes(frames), size, bytes(codes))
            for number, (frames, size, codes) in self._blocks.items()
            if number in blocks
        }
        self._codes, self._texts = memoryview(bytes(kept)), b""
        self.let_go()

    def keep_regexes(self, regexes):
        """Put regexes where `re.compile` looks for those that it has compiled before."""
        for text, flags, all_flags, code, groups, names in regexes:
            places = [None] * (groups + 1)
            for name, place in names:
                places[place] = name
            made = _sre.compile(text, all_flags, list(code), groups, dict(names), tuple(places))
            self._regexes[type(text), text, flags] = made

    def get_source(self, name):
        return self.get_data(self.archive + os.sep + self._file(name)).decode("utf-8")

    def is_package(self, name):
        return bool(self._index[name][0])

    def get_data(self, path):
        name = os.path.relpath(path, self.archive) if os.path.isabs(path) else path
        member, inner = self._members.get(name), name.replace(os.sep, "/")
        if member:
            return self._checked(inner, member[1])
        found = self._data.get(inner) or (inner.endswith(".py") and self.sources().get(inner))
        if not found:
            raise FileNotFoundError(2, "No such file in the archive", path)
        method, raw = found
        return raw if method == 0 else decompress(raw, -15)

    def _checked(self, name, method):
        """Return a member's bytes if they are those of the manifest."""
        raw = self._kept.get(name) or self._raw(name.replace("/", os.sep))
        try:
            data = raw if method == 0 else decompress(raw, -15)
        except error:
            data = b""
        if sha256(data).hexdigest() != self._hashes[name]:
            raise OSError(5, "The archive was changed", name)
        return data

    def part(self, path, begin, end):
        """Return a part of a member that is stored as it is. Not checked: the file may be another one by now."""
        offset = self._members[os.path.relpath(path, self.archive)][4]
        head = self._piece(offset, 30)
        return self._piece(offset + 30 + number(head, 26, 2) + number(head, 28, 2) + begin, end - begin)

    def data_names(self):
        """Return the names of all data files but those beside the packages."""
        return [name for name, _ in self._data.entries()]

    def sources(self):
        """Return the zip of the sources. It stays unpacked until `let_go` is called."""
        found = self._sources or Within(self.get_data(SOURCES))
        self._sources = found  # another thread may let go of it at any time
        return found

    def sha256(self):
        """Return the SHA-256 of the archive as it was when first asked, which `serve` does before it listens."""
        if not self._sha256:
            whole = sha256()
            if self.descriptor is None:
                with open(self.archive, "rb") as file:
                    whole.update(file.read())
            else:
                place = 0
                while piece := os.pread(self.descriptor, 1 << 16, place):
                    whole.update(piece)
                    place += len(piece)
            self._sha256 = whole.hexdigest()
        return self._sha256

    def _file(self, name):
        return name.replace(".", "/") + ("/__init__.py" if self._index[name][0] else ".py")

    def _raw(self, name):
        """Return the packed bytes of a member."""
        _, _, size, _, offset, _, _, _ = self._members[name]
        head = self._piece(offset, 30)
        return self._piece(offset + 30 + number(head, 26, 2) + number(head, 28, 2), size)

    def _piece(self, begin, size):
        if self.descriptor is None:  # a system without pread, which does not let an open file be replaced either
            with open(self.archive, "rb") as file:
                file.seek(begin)
                return file.read(size)
        return os.pread(self.descriptor, size, begin)


def number(raw, begin, size):
    return int.from_bytes(raw[begin : begin + size], "little")


def joined(frame, codes, places):
    """Put codes, tables of lines and tables of handlers into the frame of a module again.

    places: where their sizes begin, and where each of the three.
    """
    (first, *rest), (size, *places) = frame.split(MARK), places
    pieces = [first]
    for piece in rest:
        kind = piece[0]
        begin, places[kind] = places[kind], places[kind] + number(codes, size, 4)
        pieces += (b"s", codes[size : size + 4], codes[begin : places[kind]], piece[1:])
        size += 4
    return b"".join(pieces)


def module_of(name):
    return name[:-3].removesuffix("/__init__").replace("/", ".")


def install(reader, pack, hashes):
    """Put the finder before all others and forget what the host has loaded under one of its names."""
    finder = Finder(reader, pack, hashes)
    sys.meta_path[:] = [finder, BuiltinImporter, FrozenImporter, PathFinder]
    own = {name.partition(".")[0] for name in finder._index}
    for name in [name for name in sys.modules if name.partition(".")[0] in own and name != "__main__"]:
        del sys.modules[name]
