"""What is asked of the C library beyond what Python asks: how it keeps memory. The only door to ctypes."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h of glibc
_MAPPED_BYTES = 128 * 1024
_SPARE_BYTES = 1024 * 1024


def keep_little() -> None:
    """Give freed memory back to the system, and have large pieces mapped by themselves from now on.

    glibc maps a piece of 128 KB or more by itself, until one is freed: then only larger ones, up to 32 MB. A start
    frees some of a megabyte, and whatever was large for a moment would lie among small things that stay from then on,
    and hold the pages around them: 9 MB after a hundred thousand requests. Another C library, or a Python without
    ctypes, is left as it is.
    """
    try:
        import ctypes  # slow to import: only when nobody waits

        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES)
        library.mallopt(_TRIM_THRESHOLD, _SPARE_BYTES)
        library.malloc_trim(0)
    except (ImportError, OSError, AttributeError, TypeError):
        return
