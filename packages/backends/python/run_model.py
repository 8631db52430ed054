"""
Runs one instance of a Python model in a child process. Commands of the server come over descriptor 5. Other frames are
exchanged over descriptor 3.
"""

import os
import sys


def main():
    if sys.version_info < (3, 8):
        sys.stderr.write("a Python model needs Python 3.8 or newer\n")
        os._exit(70)
    # Before any thread starts: the guardian is a fork of this process.
    from tritonjs_stub import guardian

    guardian.start()
    from tritonjs_stub.channel import Channel

    channel = Channel(3)
    try:
        import numpy  # noqa: F401
    except Exception as error:
        python = sys.executable + " (Python " + sys.version.split()[0] + ")"
        channel.send({"type": "failed", "error": "numpy cannot be imported by " + python + ": " + str(error)})
        return
    from tritonjs_stub.stub import Stub

    Stub(channel, Channel(5)).run()


if __name__ == "__main__":
    main()
