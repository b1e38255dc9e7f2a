"""Run once a build: what each Python compiled and was compiled for it on stdin, the archive's members on stdout.

What Pythons have alike stands in it once.
"""

import hashlib
import marshal
import re
import sys

sys.path.insert(0, "")
from gateway.bundle import DIFFERENCE, difference
from gateway.cli.packs import Compiled, make_packs
from gateway.shield.regexes import share_pieces

pythons, first, regexes, natives = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - written by the build
members, told, firsts = {}, {}, {}
for name, data in sorted(natives.items()):
    platform = re.sub(r"(?<=cp)\d+|(?<=cpython-)\d+", "", name)
    like = firsts.setdefault(platform, name)
    members[name if like == name else name + DIFFERENCE] = data if like == name else difference(natives[like], data)
    told[name] = {"sha256": hashlib.sha256(data).hexdigest(), "like": None if like == name else like}
packs = make_packs({tag: Compiled(*fields) for tag, fields in pythons.items()}, frozenset(first))
sys.stdout.buffer.write(marshal.dumps((packs | share_pieces(regexes) | members, told)))
