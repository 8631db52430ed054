"""XGBoost's own predictor for `trees.bench.mjs`: trains a model, then answers lines `rows seconds` with calls a second."""
import sys
import time

import numpy as np
import xgboost

folder = sys.argv[1]
random = np.random.RandomState(0)
train = random.randn(5000, 30).astype(np.float32)
labels = (train[:, 0] * train[:, 1] + train[:, 2] + 0.3 * random.randn(5000) > 0).astype(int)
booster = xgboost.train(
    {"objective": "binary:logistic", "max_depth": 6, "nthread": 1}, xgboost.DMatrix(train, labels), 100
)
booster.save_model(f"{folder}/model.json")
rows = random.randn(1000, 30).astype(np.float32)
rows.tofile(f"{folder}/rows.bin")
booster.inplace_predict(rows).astype(np.float32).tofile(f"{folder}/scores.bin")
booster.set_param({"nthread": 1})
print("ready", flush=True)
for line in sys.stdin:
    count, seconds = line.split()
    some = rows[: int(count)]
    start = time.perf_counter()
    calls = 0
    while time.perf_counter() - start < float(seconds):
        booster.inplace_predict(some)
        calls += 1
    print(calls / (time.perf_counter() - start), flush=True)
