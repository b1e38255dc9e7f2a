"""The shield in the contracts of others: for each, what a call asks and how the answer is written. Pure."""
