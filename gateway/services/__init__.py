"""Use cases: where a rule is kept. Knows no transport."""
