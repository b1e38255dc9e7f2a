"""The ways out for events: each knows one kind of receiver, and neither the store nor which events go."""
