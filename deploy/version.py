"""Run by each Python of a build: the tag of its byte code and its version on stdout."""

import sys

sys.stdout.write(f"{sys.implementation.cache_tag} {sys.version}")
