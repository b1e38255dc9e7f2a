"""The one door to the parse trees and the engine of `re`, which are private to CPython and have no public replacement.

The shield plans rules by their parse trees and compiles trees that it has rewritten. Everything that a new Python could
change is imported here, so a new Python is checked against one file.
"""

import _sre as engine  # type: ignore[import-not-found]
import re._compiler as compiler  # type: ignore[import-not-found]
import re._constants as ops  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]

__all__ = ["compiler", "engine", "ops", "parser"]
