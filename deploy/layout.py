"""Run once a build: what `plan.py` wrote of each share of the rules on stdin, `rules.plans` on stdout."""

import gc
import marshal
import pickle
import sys

sys.path.insert(0, "")
from gateway.shield import load_rules, write_plans

gc.disable()  # as in plan.py
shares = list(map(pickle.loads, marshal.loads(sys.stdin.buffer.read())))  # noqa: S302 - written by the build
with open("rules.json", "rb") as file:
    rules = load_rules(file.read(), planned=shares)
sys.stdout.buffer.write(write_plans(rules))
