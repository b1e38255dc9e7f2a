"""Keys that training/secrets.py makes are found in every place, and what only looks like one is left alone."""

from itertools import islice

from gateway.shield import load
from training.secrets import flagged, lookalikes, secrets

SEED = 7


def test_a_sample_of_made_secrets_is_found() -> None:
    shield = load()
    missed = [one for one in islice(secrets(SEED), 0, None, 13) if not flagged(shield, one.text)]
    assert len(missed) <= 9, missed  # 2 % of 469


def test_a_sample_of_lookalikes_is_left_alone() -> None:
    shield = load()
    seen = [one for one in islice(lookalikes(SEED), 0, None, 13) if flagged(shield, one.text)]
    assert len(seen) <= 8, seen  # 1.5 % of 537
