"""A process that ends the model's whole process group when the server has ended, even if the model is busy."""

import os
import signal

# Only the server holds the other end.
LIFELINE = 4


def start():
    """Forks the guardian. The group is the model's process and all processes that it starts."""
    if os.fork() != 0:
        os.close(LIFELINE)
        # Processes that the model forks must neither keep the server's connections open nor write to them.
        os.register_at_fork(after_in_child=_leave_line)
        return
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    # The model's output must not stay open because of the guardian.
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2, 3, 5):
        os.dup2(nothing, descriptor)
    while True:
        try:
            gone = os.read(LIFELINE, 1) == b""
        except OSError:
            gone = True
        if gone:
            os.killpg(0, signal.SIGKILL)


def _leave_line():
    from . import channel

    channel.close_in_child()
