"""Run by each Python of a build: `rules.plans` on stdin, the compiled regexes on stdout."""

import gc
import marshal
import sys

sys.path.insert(0, "")
from gateway.shield import load_rules, write_regexes

gc.disable()  # as in plan.py
plans, is_first = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - written by the build
with open("rules.json", "rb") as file:
    rules = load_rules(file.read(), plans=plans)
sys.stdout.buffer.write(write_regexes(rules, is_thorough=is_first))
