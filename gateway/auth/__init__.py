"""The mechanisms of authentication as pure functions: hashes, tokens, rate windows, throttles. No store, no clock."""
