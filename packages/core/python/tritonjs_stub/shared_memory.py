"""The shared memory of a Python model, as far as models ask about it."""

import sys


class SharedMemory:
    """Stands for Triton's shared-memory pool. Tensors travel over a socket here, so there is no pool that could be full."""

    def free_memory(self):
        """Free bytes of the pool: always the same, and more than any tensor has."""
        return sys.maxsize


shared_memory = SharedMemory()
