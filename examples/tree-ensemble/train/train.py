"""Trains the model of this example: whether a card payment is fraud, from made-up payments.

Needs python3-xgboost and numpy. Writes model/fraud.json, and what XGBoost answers for the payments of main.ts.
"""
import os

import numpy as np
import xgboost

FOLDER = os.path.join(os.path.dirname(__file__), "..", "model")
random = np.random.RandomState(11)
COUNT = 8000
amount = np.exp(3.4 + 1.1 * random.randn(COUNT))
hour = random.randint(0, 24, COUNT)
kilometres = np.where(random.rand(COUNT) < 0.15, np.nan, np.abs(random.randn(COUNT)) ** 3 * 120)
minutes = random.exponential(400, COUNT)
country = random.randint(0, 6, COUNT)
risk = (
    0.9 * (amount > 120)
    + 0.8 * (np.nan_to_num(kilometres, nan=150) > 300)
    + 1.1 * (minutes < 12)
    + 0.7 * ((hour < 5) | (hour == 23))
    + 0.6 * np.isin(country, [2, 5])
)
fraud = (random.rand(COUNT) < 1 / (1 + np.exp(-(2.2 * risk - 5.5)))).astype(int)
table = np.stack([amount, hour, kilometres, minutes, country], axis=1).astype(np.float32)
types = ["q", "q", "q", "q", "c"]
names = ["amount", "hour", "kilometres_from_home", "minutes_since_last", "country"]
matrix = xgboost.DMatrix(table, fraud, feature_names=names, feature_types=types, enable_categorical=True)
parameters = {"objective": "binary:logistic", "max_depth": 4, "eta": 0.2, "tree_method": "hist", "max_cat_to_onehot": 2, "nthread": 1}
booster = xgboost.train(parameters, matrix, 30)
booster.save_model(os.path.join(FOLDER, "fraud.json"))
payments = np.array(
    [[18.5, 12, 3, 840, 0], [640, 3, 900, 4, 5], [250, 23, np.nan, 60, 1]], dtype=np.float32
)
asked = xgboost.DMatrix(payments, feature_names=names, feature_types=types, enable_categorical=True)
print(booster.predict(asked))
