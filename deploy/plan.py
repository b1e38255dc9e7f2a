"""Plan rules. SHARE SHARES: write the plans of one share, pickled. FILE...: join the shares into `rules.plans`."""

import pickle
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from gateway.shield.rules import load_rules, plan_share

rules, arguments = Path("rules.json").read_bytes(), sys.argv[1:]
if arguments[0].isdigit():
    share, shares = map(int, arguments)
    written = pickle.dumps(plan_share(rules, share, shares))
else:
    planned = [pickle.loads(Path(name).read_bytes()) for name in arguments]  # noqa: S301 - this program wrote them
    written = load_rules(rules, planned=planned).packed
sys.stdout.buffer.write(written)
