"""Measures what the shield finds and what it flags wrongly, on labelled texts given by path. Ships no text."""
