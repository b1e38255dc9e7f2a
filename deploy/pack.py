"""Run once a build: what each Python compiled on stdin, the packs on stdout, what they have alike apart."""

import marshal
import sys

sys.path.insert(0, "")
from gateway.cli.packs import Compiled, make_packs
from gateway.shield.regexes import share_pieces

pythons, first, regexes = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - written by the build
packs = make_packs({tag: Compiled(*fields) for tag, fields in pythons.items()}, frozenset(first))
sys.stdout.buffer.write(marshal.dumps((packs, share_pieces(regexes))))
