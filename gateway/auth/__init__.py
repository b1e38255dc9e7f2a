"""Mechanisms of authentication as functions of values: key form and hash, rate windows. No store, no clock."""
