import json
import os

import numpy as np


class Penguins:
    """A class of Seldon: an array in, and an array out. The scores are the negative distances to the centroids."""

    def __init__(self):
        self._centroids = None

    def load(self):
        path = os.path.join(os.path.dirname(__file__), "penguins", "centroids.json")
        with open(path) as file:
            self._centroids = np.array(list(json.load(file).values()))

    def predict(self, X, features_names=None):
        weights = np.array([1, 1, 1, 0.01])
        return np.round(-np.sum(((X[:, None, :] - self._centroids) * weights) ** 2, axis=2), 2)
