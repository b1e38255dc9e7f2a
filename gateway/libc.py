"""What is asked of the C library beyond what Python asks: how it keeps memory. The only door to ctypes."""

import re

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # malloc.h of glibc
_MAPPED_BYTES = 128 * 1024
_SPARE_BYTES = 1024 * 1024
_LARGEST_HOLE, _SMALLEST_HOLE = 64 * 1024, 24
_EVERY_SIZE_BELOW, _STEP_BYTES = 4096, 16
_COUNTS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()  # of mallinfo2
# A mapping of a file, of which some was read and nothing written to, neither here nor in swap. Its lines: proc(5).
_CLEAN = rb"""(?mx)
^(?P<line>(?P<begin>[0-9a-f]+)-(?P<end>[0-9a-f]+)\ r-[-x]p\ .*\ /(?!memfd:).*\n)
(?:[A-Z].*\n)*? Rss:\ +[1-9].*\n
(?:[A-Z].*\n)*? Anonymous:\ +0\ kB\n
(?:[A-Z].*\n)*? Swap:\ +0\ kB$"""

_filling: list[int] = []


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


def let_go_of_files() -> None:
    """Give back what was read of the interpreter's file and of libraries. What is used is read again, from the cache.

    A start runs much of them that is not run again: some 8 MB. Only mappings to which nobody wrote are given back: what
    was written to, as where addresses are put in at the start, is in no file. While a library is being loaded, all of
    it is mapped as one, and then written to: so only what is the same when nobody loads one any more. Where the system
    does not tell, or does not allow it, all is left as it is.
    """
    try:
        import ctypes
        import mmap

        with open("/proc/self/maps", "rb") as file:
            before = file.read()
        library = ctypes.CDLL(None)  # which waits for whoever loads one
        madvise = library.madvise
        madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        with open("/proc/self/smaps", "rb") as file:
            now = file.read()
        for found in re.finditer(_CLEAN, now):
            if found["line"] in before:
                begin = int(found["begin"], 16)
                madvise(begin, int(found["end"], 16) - begin, mmap.MADV_DONTNEED)
    except (ImportError, OSError, AttributeError, TypeError):
        return


def keep_together() -> None:
    """Have all threads take memory of one heap. To be called before the first thread.

    Else glibc gives each a heap of its own, to be copied in each process after a fork, and full of holes by then.
    """
    try:
        import ctypes

        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
    except (ImportError, OSError, AttributeError, TypeError):
        return


def fill_holes() -> None:
    """Take what is free between pieces of the heap, so that what is taken from now on lies behind them all.

    To be called in the main thread, while there is no other, and after `empty_holes`.
    """
    try:
        import ctypes

        class Info(ctypes.Structure):
            _fields_ = [(name, ctypes.c_size_t) for name in _COUNTS]

        library = ctypes.CDLL(None)
        info, malloc, free, sbrk = library.mallinfo2, library.malloc, library.free, library.sbrk
        info.restype, malloc.restype, sbrk.restype, free.restype = Info, ctypes.c_void_p, ctypes.c_void_p, None
        malloc.argtypes, sbrk.argtypes, free.argtypes = [ctypes.c_size_t], [ctypes.c_ssize_t], [ctypes.c_void_p]
    except (ImportError, OSError, AttributeError, TypeError):
        return
    end = sbrk(0) - info().keepcost
    size = _LARGEST_HOLE
    while size >= _SMALLEST_HOLE:
        place = malloc(size)
        if place and place < end:
            _filling.append(place)
            continue
        free(place)
        size = size * 3 // 4 if size > _EVERY_SIZE_BELOW else size - _STEP_BYTES


def empty_holes() -> None:
    """Give back what fills the holes of the heap."""
    if _filling:
        import ctypes

        free = ctypes.CDLL(None).free
        free.restype, free.argtypes = None, [ctypes.c_void_p]
        while _filling:
            free(_filling.pop())
