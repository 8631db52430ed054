"""
Runs a repository agent in a child process. Actions of the server and their answers are lines of JSON over descriptor 3.
An agent is a module with functions named after the actions, each of which gets a `Model`.
"""

import importlib.util
import json
import os
import sys

ACTIONS = ("LOAD", "LOAD_COMPLETE", "LOAD_FAIL", "UNLOAD", "UNLOAD_COMPLETE")


class Model:
    """A model as an agent sees it."""

    def __init__(self, given, ask):
        self.name = given["name"]
        self.location = given["location"]
        # The configuration as written, with Triton's names.
        self.config = json.loads(given["config"])
        # Parameters of the agent from the configuration.
        self.parameters = given["parameters"]
        self._ask = ask

    def replace_location(self):
        """Makes an empty directory to load from instead, until the model has unloaded. For LOAD only."""
        answer = self._ask({"type": "replaceLocation"})
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["location"]


def load(path):
    spec = importlib.util.spec_from_file_location("tritonjs_agent", path)
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.dirname(path))
    spec.loader.exec_module(module)
    if not any(callable(getattr(module, action, None)) for action in ACTIONS):
        raise TypeError("expected functions named " + ", ".join(ACTIONS) + ", got none")
    return module


def text_of(error):
    return type(error).__name__ + ": " + str(error)


def main():
    from tritonjs_stub import guardian

    guardian.start()
    path = sys.argv[1]
    module, failure = None, None
    try:
        module = load(path)
    except Exception as error:
        failure = "cannot import '" + path + "': " + text_of(error)
    with open(3, "r+b", buffering=0) as line:
        reader = open(3, "rb", closefd=False)

        def send(message):
            line.write(json.dumps(message).encode() + b"\n")

        def ask(message):
            send(message)
            return json.loads(reader.readline())

        for text in iter(reader.readline, b""):
            given = json.loads(text)
            if failure is not None:
                send({"type": "failed", "error": failure})
                return
            try:
                act = getattr(module, given["action"], None)
                location = act(Model(given, ask)) if act is not None else None
                sys.stdout.flush()
                send({"type": "done", "location": None if location is None else os.fspath(location)})
            except Exception as error:
                sys.stdout.flush()
                send({"type": "failed", "error": text_of(error)})


if __name__ == "__main__":
    main()
