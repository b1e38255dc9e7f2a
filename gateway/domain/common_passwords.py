"""The 10,000 most common passwords, which nobody may choose. The file is made by `deploy/common_passwords.py`."""

import hashlib
import re
import unicodedata

from gateway import bundle

FILE = "gateway/domain/common-passwords.bin"
HASH_BYTES = 5
COUNT = 10_000
_END = re.compile(r"[0-9!]{1,4}\Z")


def is_common(password: str) -> bool:
    """Tell whether a password is in the list, whatever its case and width, with up to four digits or ! at its end."""
    folded = unicodedata.normalize("NFKC", password).strip().casefold()
    packed = bundle.read(FILE)
    known = {packed[at : at + HASH_BYTES] for at in range(0, len(packed), HASH_BYTES)}
    return any(_hash(text) in known for text in (folded, _END.sub("", folded)))


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:HASH_BYTES]
