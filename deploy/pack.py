"""Run once a build: what each Python compiled and was compiled for it on stdin, the archive's members on stdout.

What Pythons have alike stands in it once. Of a platform's native files that one is kept whole with which all of them
take least.
"""

import hashlib
import marshal
import re
import sys
import zlib

sys.path.insert(0, "")
from gateway.bundle import DIFFERENCE, difference
from gateway.cli.packs import Compiled, make_packs
from gateway.shield.regexes import share_pieces

pythons, first, regexes, natives = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - written by the build
members, told, platforms = {}, {}, {}
for name in sorted(natives):
    platforms.setdefault(re.sub(r"(?<=cp)\d+|(?<=cpython-)\d+", "", name), []).append(name)


def packed_like(like, names):
    """Return what the archive has of one platform's files if one of them is there as it is."""
    others = {name + DIFFERENCE: difference(natives[like], natives[name]) for name in names if name != like}
    return {like: natives[like]} | others


for names in platforms.values():
    ways = {like: packed_like(like, names) for like in names}
    like = min(ways, key=lambda like: sum(len(zlib.compress(data, 9)) for data in ways[like].values()))
    members |= ways[like]
    for name in names:
        digest = hashlib.sha256(natives[name]).hexdigest()
        told[name] = {"sha256": digest, "like": None if name == like else like}
packs = make_packs({tag: Compiled(*fields) for tag, fields in pythons.items()}, frozenset(first))
sys.stdout.buffer.write(marshal.dumps((packs | share_pieces(regexes) | members, told)))
