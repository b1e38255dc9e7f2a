"""Event outputs: each module sends to one kind of receiver. None knows the store or selects events."""
