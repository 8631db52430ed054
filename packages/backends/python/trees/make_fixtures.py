"""Trains the small models of test/trees/fixtures with XGBoost and scikit-learn, and writes what the libraries predict.

    python packages/backends/python/trees/make_fixtures.py

Needs python3-xgboost, python3-sklearn and numpy. Written with XGBoost 1.7.4 and scikit-learn 1.2.1.
"""
import json
import os
import sys

import numpy as np
import xgboost as xgb
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier

sys.path.insert(0, os.path.dirname(__file__))
from sklearn_to_treelite import save

FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "test", "trees", "fixtures")
random = np.random.RandomState(7)
ROWS = 16
FEATURES = 6
EVERY = ("json", "ubj", "model")

X = random.randn(600, FEATURES).astype(np.float32)
score = X[:, 0] * X[:, 1] + X[:, 2] - 0.5 * X[:, 3]
binary = (score > 0).astype(int)
classes = np.digitize(score, [-0.7, 0.7])
positive = np.exp(0.5 * score + 0.1 * random.randn(600))
holes = X.copy()
holes[random.rand(*X.shape) < 0.2] = np.nan
categorical = X.copy()
categorical[:, 0] = random.randint(0, 12, 600)
categorical[:, 1] = random.randint(0, 40, 600)
of_category = ((categorical[:, 0] % 3 == 0) ^ (categorical[:, 1] > 20) ^ (X[:, 2] > 0)).astype(int)
probe = random.randn(ROWS, FEATURES).astype(np.float32)
probe_holes = probe.copy()
probe_holes[random.rand(*probe.shape) < 0.3] = np.nan
probe_categories = probe_holes.copy()
probe_categories[:, 0] = random.randint(-1, 14, ROWS)
probe_categories[:, 1] = random.randint(0, 60, ROWS)
probe_categories[0, 0] = np.nan
probe_categories[1, 1] = 3.7
cases = []


def plain(values):
    return [None if np.isnan(value) else float(str(value)) for value in np.ravel(values)]


def write(name, data):
    path = os.path.join(FOLDER, name)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def add_xgboost(name, params, train, labels, rows, rounds=8, formats=("json",), **more):
    types = more.pop("types", None)
    matrix = xgb.DMatrix(train, labels, feature_types=types, enable_categorical=types is not None, **more)
    params = {"max_depth": 3, "nthread": 1, "seed": 1, **params}
    booster = xgb.train(params, matrix, rounds)
    files = [f"{name}.{format}" for format in formats]
    for file in files:
        booster.save_model(os.path.join(FOLDER, file))
    asked = xgb.DMatrix(rows, feature_types=types, enable_categorical=types is not None)
    scores = booster.predict(asked)
    if params["objective"] == "multi:softmax":
        other = booster.copy()
        other.set_param({"objective": "multi:softprob"})
        scores = other.predict(asked)
    groups = max(1, params.get("num_class", 1))
    booster.set_param({"nthread": 1})
    case = {
        "files": files,
        "objective": params["objective"],
        "features": FEATURES,
        "groups": groups,
        "rows": plain(rows),
        "margins": plain(booster.predict(asked, output_margin=True)),
        "scores": plain(scores),
        "firstThreeRounds": plain(booster.predict(asked, output_margin=True, iteration_range=(0, 3))),
    }
    if params.get("booster") != "dart" and types is None:
        case["contributions"] = plain(booster.predict(asked, pred_contribs=True))
    cases.append(case)


add_xgboost("binary", {"objective": "binary:logistic", "base_score": 0.3}, holes, binary, probe_holes, formats=EVERY)
add_xgboost("multiclass", {"objective": "multi:softprob", "num_class": 3}, X, classes, probe, rounds=4, formats=EVERY)
add_xgboost("softmax", {"objective": "multi:softmax", "num_class": 3}, X, classes, probe, rounds=3)
add_xgboost("regression", {"objective": "reg:squarederror"}, X, score, probe)
add_xgboost("poisson", {"objective": "count:poisson", "base_score": 2.0}, X, np.round(positive), probe, rounds=3, formats=("json", "model"))
add_xgboost("gamma", {"objective": "reg:gamma"}, X, positive, probe, rounds=3)
add_xgboost("tweedie", {"objective": "reg:tweedie"}, X, positive, probe, rounds=3)
add_xgboost("hinge", {"objective": "binary:hinge"}, X, binary, probe, rounds=3)
add_xgboost("logitraw", {"objective": "binary:logitraw", "base_score": 0.4}, X, binary, probe, rounds=3)
add_xgboost("reglogistic", {"objective": "reg:logistic", "base_score": 0.6}, X, binary, probe, rounds=3)
add_xgboost("dart", {"objective": "binary:logistic", "booster": "dart", "rate_drop": 0.5}, X, binary, probe, formats=EVERY)
add_xgboost(
    "forest",
    {"objective": "binary:logistic", "num_parallel_tree": 4, "subsample": 0.5, "colsample_bynode": 0.6},
    X, binary, probe, rounds=3, formats=EVERY,
)
add_xgboost(
    "categorical", {"objective": "binary:logistic", "tree_method": "hist", "max_cat_to_onehot": 4},
    categorical, of_category, probe_categories, formats=("json", "ubj"), types=["c", "c", "q", "q", "q", "q"],
)
add_xgboost(
    "onehot", {"objective": "binary:logistic", "tree_method": "hist", "max_cat_to_onehot": 60},
    categorical, of_category, probe_categories, formats=("json", "ubj"), types=["c", "c", "q", "q", "q", "q"],
)
add_xgboost("deep", {"objective": "reg:squarederror", "max_depth": 9, "min_child_weight": 0}, X[:150], score[:150], probe, rounds=3)


def add_sklearn(name, model, labels, scores):
    model.fit(X, labels)
    save(model, os.path.join(FOLDER, f"{name}.tl"))
    groups = len(model.classes_) if hasattr(model, "classes_") else 1
    if name.startswith("boosted") and groups == 2:
        groups = 1
    cases.append({
        "files": [f"{name}.tl"], "objective": type(model).__name__, "features": FEATURES, "groups": groups,
        "rows": plain(probe), "scores": plain(scores(model)),
    })


def probabilities(model):
    return model.predict_proba(probe)


add_sklearn("random-forest", RandomForestClassifier(5, max_depth=4, random_state=1), classes, probabilities)
add_sklearn("extra-trees", ExtraTreesClassifier(4, max_depth=4, random_state=1), binary, probabilities)
add_sklearn("forest-regressor", RandomForestRegressor(4, max_depth=4, random_state=1), score, lambda m: m.predict(probe))
add_sklearn("decision-tree", DecisionTreeClassifier(max_depth=4, random_state=1), classes, probabilities)
add_sklearn("boosted-binary", GradientBoostingClassifier(n_estimators=6, random_state=1), binary, lambda m: m.predict_proba(probe)[:, 1])
add_sklearn("boosted-exponential", GradientBoostingClassifier(loss="exponential", n_estimators=6, random_state=1), binary, lambda m: m.predict_proba(probe)[:, 1])
add_sklearn("boosted-multiclass", GradientBoostingClassifier(n_estimators=3, random_state=1), classes, probabilities)
add_sklearn("boosted-regressor", GradientBoostingRegressor(n_estimators=6, random_state=1), score, lambda m: m.predict(probe))

write("expected.json", json.dumps(cases, separators=(",", ":")))
