"""Prints a line for each action. It runs in a process of its own, which keeps its variables between actions."""

import time

loaded_at = {}


def LOAD_COMPLETE(model):
    loaded_at[model.name] = time.monotonic()
    print("loaded " + model.name, flush=True)


def LOAD_FAIL(model):
    print("could not load " + model.name, flush=True)


def UNLOAD_COMPLETE(model):
    seconds = time.monotonic() - loaded_at.pop(model.name)
    print("unloaded %s after %.1f s" % (model.name, seconds), flush=True)
