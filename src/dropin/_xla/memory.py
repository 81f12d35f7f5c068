"""Memory that the compiler has freed, given back to the system."""

import ctypes

__all__ = ["release_memory"]


def release_memory() -> None:
    """Give memory that was freed back to the operating system, where the C library can do so.

    While it compiles, XLA holds all kernels of a program at the same time, which takes hundreds of
    MiB for a training program. It frees them, but the C library keeps the memory for the process.
    `benchmarks/versus.py` measures what a training process holds. Only glibc has the function.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return
    trim(0)
