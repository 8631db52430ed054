"""Trains the small LightGBM models of test/trees/fixtures, and writes what LightGBM predicts.

    pip install lightgbm==4.7.0
    python packages/backends/python/trees/make_lightgbm_fixtures.py
"""
import json
import os

import lightgbm as lgb
import numpy as np

FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "test", "trees", "fixtures")
random = np.random.RandomState(11)
ROWS = 16
FEATURES = 6

X = random.randn(600, FEATURES).astype(np.float32)
score = X[:, 0] * X[:, 1] + X[:, 2] - 0.5 * X[:, 3]
binary = (score > 0).astype(int)
classes = np.digitize(score, [-0.7, 0.7])
positive = np.exp(0.5 * score + 0.1 * random.randn(600))
share = 1 / (1 + np.exp(-score))
holes = X.copy()
holes[random.rand(*X.shape) < 0.2] = np.nan
zeros = X.copy()
zeros[random.rand(*X.shape) < 0.3] = 0
categorical = X.copy()
categorical[:, 0] = random.randint(0, 12, 600)
categorical[:, 1] = random.randint(0, 40, 600)
of_category = ((categorical[:, 0] % 3 == 0) ^ (categorical[:, 1] > 20) ^ (X[:, 2] > 0)).astype(int)
probe = random.randn(ROWS, FEATURES).astype(np.float32)
probe_holes = probe.copy()
probe_holes[random.rand(*probe.shape) < 0.3] = np.nan
probe_zeros = probe_holes.copy()
probe_zeros[random.rand(*probe.shape) < 0.3] = 0
probe_categories = probe_holes.copy()
probe_categories[:, 0] = random.randint(-1, 14, ROWS)
probe_categories[:, 1] = random.randint(0, 60, ROWS)
probe_categories[0, 0] = np.nan
probe_categories[1, 1] = 3.7
cases = []


def plain(values):
    return [None if np.isnan(value) else float(value) for value in np.ravel(values)]


def add(name, params, train, labels, rows, rounds=6, **more):
    params = {
        "num_leaves": 7, "learning_rate": 0.3, "seed": 1, "num_threads": 1, "deterministic": True,
        "force_row_wise": True, "verbosity": -1, **params,
    }
    booster = lgb.train(params, lgb.Dataset(train, labels, **more), rounds)
    file = f"lightgbm-{name}.txt"
    booster.save_model(os.path.join(FOLDER, file))
    case = {
        "files": [file], "objective": params["objective"], "features": FEATURES,
        "groups": params.get("num_class", 1), "rows": plain(rows), "scores": plain(booster.predict(rows)),
    }
    if params.get("boosting") != "rf":
        case["margins"] = plain(booster.predict(rows, raw_score=True))
        case["firstThreeRounds"] = plain(booster.predict(rows, raw_score=True, num_iteration=3))
        if "categorical_feature" not in more:
            case["contributions"] = plain(booster.predict(rows, pred_contrib=True))
    cases.append(case)


add("binary", {"objective": "binary", "sigmoid": 1.5}, holes, binary, probe_holes)
add("no-missing", {"objective": "binary", "use_missing": False}, X, binary, probe_holes)
add("zero-as-missing", {"objective": "regression", "zero_as_missing": True}, zeros, score, probe_zeros)
add("categorical", {"objective": "binary"}, categorical, of_category, probe_categories, categorical_feature=[0, 1])
add("multiclass", {"objective": "multiclass", "num_class": 3}, X, classes, probe, rounds=3)
add("multiclassova", {"objective": "multiclassova", "num_class": 3}, X, classes, probe, rounds=3)
add("cross-entropy", {"objective": "cross_entropy"}, X, share, probe, rounds=3)
add("xentlambda", {"objective": "cross_entropy_lambda"}, X, share, probe, rounds=3)
add("poisson", {"objective": "poisson"}, X, positive, probe, rounds=3)
add("sqrt", {"objective": "regression", "reg_sqrt": True}, X, score, probe, rounds=3)
add("l1", {"objective": "regression_l1"}, X, score, probe, rounds=3)
add("dart", {"objective": "binary", "boosting": "dart", "drop_rate": 0.5}, X, binary, probe)
add(
    "random-forest",
    {"objective": "binary", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6, "feature_fraction": 0.7},
    X, binary, probe,
)
add("monotone", {"objective": "regression", "monotone_constraints": [1, 0, 1, -1, 0, 0]}, holes, score, probe_holes)

with open(os.path.join(FOLDER, "lightgbm-expected.json"), "w") as file:
    json.dump(cases, file, separators=(",", ":"))
