"""The memory of this process."""

import os


def used_bytes():
    """What this process holds."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        # Of macOS, and the most that it has ever held.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
