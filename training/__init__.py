"""Trains the attack model of the shield, and measures what the shield finds. No part of the gateway imports it."""
