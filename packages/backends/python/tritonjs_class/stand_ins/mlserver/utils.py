"""Helpers that models use while they load."""

import os


async def get_model_uri(settings, wellknown_filenames=()):
    """The path of the model's file: its uri, or the first usual file in it."""
    uri = settings.parameters.uri
    if not uri:
        raise ValueError("model '" + settings.name + "' has no parameters.uri")
    if os.path.isdir(uri):
        for name in wellknown_filenames:
            path = os.path.join(uri, name)
            if os.path.isfile(path):
                return path
    return uri
