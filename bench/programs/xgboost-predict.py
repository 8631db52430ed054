"""XGBoost's own predictor for `trees.bench.mjs`: trains models, then answers lines `model rows seconds` with calls a second."""
import sys
import time

import numpy as np
import xgboost

folder = sys.argv[1]
random = np.random.RandomState(0)
models = {}


def normal(rows):
    return random.randn(rows, 30).astype(np.float32)


def sparse(values):
    return np.where(random.rand(*values.shape) < 0.8, np.nan, values).astype(np.float32)


def categorical(values):
    values = values.copy()
    values[:, :10] = random.randint(0, 50, (len(values), 10))
    return values


def train(name, rounds, values, labels, rows, parameters, **matrix):
    given = {"objective": "binary:logistic", "max_depth": 6, "tree_method": "hist", "nthread": 1, **parameters}
    booster = xgboost.train(given, xgboost.DMatrix(values, labels, **matrix), rounds)
    booster.save_model(f"{folder}/{name}.json")
    rows.tofile(f"{folder}/{name}.rows")
    booster.set_param({"nthread": 1})
    booster.inplace_predict(rows).astype(np.float32).tofile(f"{folder}/{name}.scores")
    models[name] = booster, rows


values, rows = normal(5000), normal(1000)
labels = (values[:, 0] * values[:, 1] + values[:, 2] + 0.3 * random.randn(5000) > 0).astype(int)
train("usual", 100, values, labels, rows, {})
train("thousand", 1000, values, labels, rows, {"eta": 0.05})
train("sparse", 100, sparse(values), labels, sparse(rows), {})
classes = (np.abs(values[:, 0] * 3) + values[:, 1]).astype(int).clip(0, 4)
train("multiclass", 100, values, classes, rows, {"objective": "multi:softprob", "num_class": 5})
codes, more = categorical(values), categorical(rows)
parity = ((codes[:, 0].astype(int) * 7 % 13 > 6) ^ (codes[:, 15] > 0)).astype(int)
kinds = ["c"] * 10 + ["q"] * 20
few = {"max_cat_to_onehot": 4}
train("categorical", 100, codes, parity, more, few, feature_types=kinds, enable_categorical=True)
many = normal(30000)
noisy = (many[:, 0] * many[:, 1] + many[:, 2] + 0.8 * random.randn(30000) > 0).astype(int)
train("deep", 60, many, noisy, rows, {"max_depth": 16, "min_child_weight": 0, "eta": 0.05})

print("ready", flush=True)
for line in sys.stdin:
    name, count, seconds = line.split()
    booster, rows = models[name]
    some = rows[: int(count)]
    start = time.perf_counter()
    calls = 0
    while time.perf_counter() - start < float(seconds):
        booster.inplace_predict(some)
        calls += 1
    print(calls / (time.perf_counter() - start), flush=True)
