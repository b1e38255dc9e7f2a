"""Run for each share of the rules: which of how many on stdin, their plans on stdout, pickled."""

import gc
import pickle
import sys

sys.path.insert(0, "")
from gateway.shield.rules import plan_share

gc.disable()  # planning makes much and little garbage of it in circles
share, shares = map(int, sys.stdin.read().split())
with open("rules.json", "rb") as file:
    plans = plan_share(file.read(), share, shares)
sys.stdout.buffer.write(pickle.dumps(plans))
