"""The one door to the parse trees of `re`, which are private to CPython and have no public replacement.

The shield plans rules by their parse trees. Everything that a new Python could change is imported here, so a new Python
is checked against one file.
"""

import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]

__all__ = ["ops", "parser"]
