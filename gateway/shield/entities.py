"""What names of characters in HTML mean. Apart from `decode`: the table is large, and few texts need it."""

from html import unescape

__all__ = ["unescape"]
