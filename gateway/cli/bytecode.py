"""The byte-code pack of one Python: made from sources, and compared with the sources that lie beside it. Pure.

The build makes packs with it and `verify --bytecode` makes them again. Nothing of a pack that is compared is ever
unmarshalled, since marshal data from elsewhere can crash the interpreter.

Layout: the magic number (4 bytes), the CRC-32 of all after byte 8 (4), the length of the boot code (4), the boot code,
the length of the index (4), the index as JSON, then what the index points into: {"modules": {name: [file, is_package,
start, end]}, "words": [start, end], "texts": [start, end], "known": [start, end]}. Each piece is zlib'd, a module with
`words` as its preset dictionary. `texts` are those that `dataclasses` compiles, as JSON, and `known` their byte code in
the same order. A module whose end is 0 is compiled from its source when somebody asks for it. Integers are little
endian.
"""

import importlib.util
import json
import marshal
import sys
import zlib
from collections.abc import Iterable, Mapping

BOOT = "_boot.py"
LAUNCHER = "__main__.py"
# Of this version the bytes depend on the code alone, not on what else the process holds.
_MARSHAL = 2
_WORDS_BYTES = 32_768  # all that zlib looks back
_WORDS_OF_EACH_BYTES = 1_200


def module_of(file: str) -> str:
    """Return the name of the module in a source file."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def compiled(text: bytes | str, file: str) -> bytes:
    """Return the byte code of a source, marshalled. The same for the same Python, whoever asks."""
    return marshal.dumps(compile(text, file, "exec", dont_inherit=True, optimize=0), _MARSHAL)


def known_texts(texts: Iterable[str]) -> bytes:
    """Return the byte code of the texts that `dataclasses` writes, as a marshalled list."""
    codes = [compile(text, "<string>", "exec", dont_inherit=True, optimize=0) for text in texts]
    return marshal.dumps(codes, _MARSHAL)


def is_left_out(file: str) -> bool:
    """Tell whether a source travels without byte code, since the running Python hardly needs it."""
    return file == "typing_extensions.py" and sys.version_info >= (3, 13)


def make_pack(sources: Mapping[str, bytes], texts: Iterable[str]) -> bytes:
    """Compile every source for the running Python. sources: by file name; the launcher is left out."""
    codes = {file: compiled(sources[file], file) for file in sorted(sources) if file not in (BOOT, LAUNCHER)}
    # How modules begin: names and constants that many of them share.
    words = b"".join(code[:_WORDS_OF_EACH_BYTES] for code in codes.values())[-_WORDS_BYTES:]
    blob = bytearray()

    def add(data: bytes, dictionary: bytes = b"") -> list[int]:
        begin = len(blob)
        packer = zlib.compressobj(9, zdict=dictionary) if dictionary else zlib.compressobj(9)
        blob.extend(packer.compress(data) + packer.flush())
        return [begin, len(blob)]

    texts = sorted(texts)
    modules = {
        module_of(file): [file, file.endswith("/__init__.py"), *([0, 0] if is_left_out(file) else add(code, words))]
        for file, code in codes.items()
    }
    rest_of_it = {"words": add(words), "known": add(known_texts(texts)), "texts": add(json.dumps(texts).encode())}
    index = {"modules": modules, **rest_of_it}
    head = json.dumps(index, separators=(",", ":")).encode()
    boot = compiled(sources[BOOT], BOOT)
    rest = b"".join((_number(len(boot)), boot, _number(len(head)), head, bytes(blob)))
    return importlib.util.MAGIC_NUMBER + _number(zlib.crc32(rest)) + rest


def differences(pack: bytes, sources: Mapping[str, bytes]) -> list[str]:
    """Compile `sources` anew and return what of `pack` is not their byte code, empty when all of it is.

    Raises:
        ValueError, LookupError, TypeError, zlib.error: it is no pack.
    """
    if pack[:4] != importlib.util.MAGIC_NUMBER:
        return ["its byte code is of another Python than the one that verifies"]
    problems = [] if zlib.crc32(pack[8:]) == int.from_bytes(pack[4:8], "little") else ["its checksum is wrong"]
    end = 12 + int.from_bytes(pack[8:12], "little")
    boot, begin = pack[12:end], end + 4 + int.from_bytes(pack[end : end + 4], "little")
    index, blob = json.loads(pack[end + 4 : begin]), pack[begin:]
    if boot != compiled(sources[BOOT], BOOT):
        problems.append(f"{BOOT} has other byte code")
    words = zlib.decompress(blob[slice(*index["words"])])
    wanted = {module_of(file): file for file in sources if file not in (BOOT, LAUNCHER)}
    for name in sorted({*wanted, *index["modules"]}):
        file = wanted.get(name)
        if file is None or name not in index["modules"]:
            problems.append(f"{name} is only in the {'byte code' if file is None else 'sources'}")
            continue
        said, is_package, start, stop = index["modules"][name]
        if (said, is_package) != (file, file.endswith("/__init__.py")):
            problems.append(f"{name} is said to be {said}")
        elif (start, stop) == (0, 0) and is_left_out(file):
            continue
        elif zlib.decompressobj(zdict=words).decompress(blob[start:stop]) != compiled(sources[file], file):
            problems.append(f"{file} has other byte code")
    texts = json.loads(zlib.decompress(blob[slice(*index["texts"])]))
    if zlib.decompress(blob[slice(*index["known"])]) != known_texts(texts):
        problems.append("the methods of records have other byte code")
    return problems


def _number(value: int) -> bytes:
    return value.to_bytes(4, "little")
