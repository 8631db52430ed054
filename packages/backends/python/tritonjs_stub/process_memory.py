"""The memory of this process."""

import os


def used_bytes():
    """Returns the bytes of memory that this process uses."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        # On macOS, this is the peak since the start.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
