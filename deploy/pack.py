"""Run once a build: what each Python compiled and was compiled for it on stdin, the archive's members on stdout.

What Pythons have alike stands in it once. Of a platform's native files that one is kept whole with which all of them
take least. The sources are packed as one: what is alike is near there, since zlib looks back no further than 32 KB.
"""

import hashlib
import marshal
import re
import sys
import zlib
from collections import Counter, deque

sys.path.insert(0, "")
from gateway.bundle import DIFFERENCE, difference
from gateway.cli.packs import Compiled, make_packs

GRAM_BYTES, SIGHT_BYTES, FEW_GRAMS = 12, 32_000, 600
pythons, first, natives, sources = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - written by the build
members, told, platforms = {}, {}, {}
for name in sorted(natives):
    platforms.setdefault(re.sub(r"(?<=cp)\d+|(?<=cpython-)\d+", "", name), []).append(name)


def packed_like(like, names):
    """Return what the archive has of one platform's files if one of them is there as it is."""
    others = {name + DIFFERENCE: difference(natives[like], natives[name]) for name in names if name != like}
    return {like: natives[like]} | others


def grams(data):
    """Return checksums of what stands in a source, of every fourth place or so."""
    every = (zlib.crc32(data[place : place + GRAM_BYTES]) for place in range(len(data)))
    return {gram for gram in every if not gram & 3}


def in_line(sources):
    """Return the names of the sources, each behind those that have most of what is in it."""
    found, line, near, size = {name: grams(data) for name, data in sources.items()}, [], deque(), 0
    holders, in_sight, known = {}, Counter(), Counter()
    for name, own in found.items():
        for gram in own:
            holders.setdefault(gram, []).append(name)
    while found:
        name = max(found, key=lambda name: known[name] / (len(found[name]) + FEW_GRAMS))
        line.append(name)
        near.append((len(sources[name]), found.pop(name)))
        size += near[-1][0]
        in_sight.update(near[-1][1])
        known.update(other for gram in near[-1][1] if in_sight[gram] == 1 for other in holders[gram])
        while size > SIGHT_BYTES and len(near) > 1:
            gone, own = near.popleft()
            size -= gone
            in_sight.subtract(own)
            known.subtract(other for gram in own if not in_sight[gram] for other in holders[gram])
    return line


for names in platforms.values():
    ways = {like: packed_like(like, names) for like in names}
    like = min(ways, key=lambda like: sum(len(zlib.compress(data, 9)) for data in ways[like].values()))
    members |= ways[like]
    for name in names:
        digest = hashlib.sha256(natives[name]).hexdigest()
        told[name] = {"sha256": digest, "like": None if name == like else like}
packs = make_packs({tag: Compiled(*fields) for tag, fields in pythons.items()}, frozenset(first))
order = in_line(dict(marshal.loads(sources)))  # noqa: S302 - as well
sys.stdout.buffer.write(marshal.dumps((packs | members, told, order)))
