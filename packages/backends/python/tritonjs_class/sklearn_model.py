"""A model of scikit-learn, as MLServer's runtime serves it."""

import pickle

import numpy as np


class SKLearnModel:
    """Loads a file of joblib or pickle. Its outputs are `predict`, and `predict_proba` if the settings name it."""

    def __init__(self, settings):
        self._settings = settings
        self._model = None

    @staticmethod
    def describe(settings, batches):
        model = _read(settings["uri"])
        classes = getattr(model, "classes_", None)
        kind = "FP64" if classes is None else {"i": "INT64", "U": "STRING", "O": "STRING"}.get(classes.dtype.kind, "FP64")
        several = getattr(model, "n_outputs_", 1) not in (1, None)
        rows = [] if batches else [-1]
        row = rows + [-1] if several else rows or [1]
        wanted = settings["outputs"] or ["predict"]
        types = {"predict": (kind, row), "predict_proba": ("FP64", rows + [-1])}
        unknown = [name for name in wanted if name not in types]
        if unknown:
            raise ValueError("unknown output '" + unknown[0] + "': expected predict or predict_proba")
        outputs = [
            {"name": name, "data_type": "TYPE_" + types[name][0], "dims": types[name][1]} for name in wanted
        ]
        return [{"name": "INPUT_1", "data_type": "TYPE_FP64", "dims": rows + [-1]}], outputs

    def load(self):
        self._model = _read(self._settings["uri"])

    def predict(self, rows):
        wanted = self._settings["outputs"] or ["predict"]
        return {name: np.asarray(getattr(self._model, name)(rows)) for name in wanted}


def _read(path):
    if path.endswith(".joblib"):
        import joblib

        return joblib.load(path)
    with open(path, "rb") as file:
        return pickle.load(file)
