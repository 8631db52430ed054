"""Trains the models of the tests: python make_sklearn_fixtures.py <folder>. It needs scikit-learn."""

import json
import os
import sys

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import ElasticNet, LinearRegression, LogisticRegression, Perceptron, Ridge, RidgeClassifier, SGDClassifier, SGDRegressor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.multiclass import OneVsRestClassifier  # noqa: F401
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import Binarizer, MaxAbsScaler, MinMaxScaler, Normalizer, OneHotEncoder, OrdinalEncoder, PolynomialFeatures, RobustScaler, StandardScaler
from sklearn.svm import LinearSVC, LinearSVR

from sklearn_to_json import convert

iris = load_iris(return_X_y=True)
names = load_iris().target_names
cancer = load_breast_cancer(return_X_y=True)
diabetes = load_diabetes(return_X_y=True)

random = np.random.default_rng(7)
mixed = np.empty((200, 4), dtype=object)
mixed[:, 0] = random.choice(["red", "green", "blue"], 200)
mixed[:, 1] = random.choice(["s", "m", "l"], 200)
mixed[:, 2] = random.normal(size=200) * 30 + 50
mixed[:, 3] = random.normal(size=200)
bought = ((mixed[:, 0] == "red") * 1.0 + mixed[:, 3].astype(float) + random.normal(size=200) * 0.3 > 0.5).astype(int)
numbers = np.c_[random.integers(0, 4, 200), random.integers(5, 8, 200), random.normal(size=200)]
targets = np.c_[diabetes[1], diabetes[1] ** 0.5]

columns = ColumnTransformer(
    [
        ("texts", OneHotEncoder(handle_unknown="ignore"), [0]),
        ("order", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), [1]),
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), slice(2, 3)),
    ],
    remainder="passthrough",
)

models = {
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()).fit(*cancer),
    "logistic-texts": make_pipeline(MinMaxScaler(clip=True), LogisticRegression(max_iter=500)).fit(iris[0], names[iris[1]]),
    "linear": LinearRegression().fit(*diabetes),
    "ridge-targets": make_pipeline(RobustScaler(), PolynomialFeatures(2), Ridge()).fit(diabetes[0], targets),
    "elastic-net": make_pipeline(MaxAbsScaler(), ElasticNet(alpha=0.1)).fit(*diabetes),
    "svc": make_pipeline(StandardScaler(), PCA(3), LinearSVC(dual=False)).fit(*iris),
    "svc-binary": make_pipeline(Normalizer(), LinearSVC(dual=False)).fit(*cancer),
    "svr": make_pipeline(StandardScaler(), LinearSVR(dual=False, loss="squared_epsilon_insensitive")).fit(*diabetes),
    "sgd-log": make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", random_state=0)).fit(*iris),
    "sgd-huber": make_pipeline(StandardScaler(), SGDClassifier(loss="modified_huber", random_state=0)).fit(*iris),
    "sgd-hinge": make_pipeline(StandardScaler(), SGDClassifier(random_state=0)).fit(*cancer),
    "sgd-regression": make_pipeline(StandardScaler(), SGDRegressor(random_state=0)).fit(*diabetes),
    "ridge-classifier": make_pipeline(PCA(4, whiten=True), RidgeClassifier()).fit(*cancer),
    "perceptron": make_pipeline(SelectKBest(k=2), Binarizer(threshold=1.0), Perceptron()).fit(*iris),
    "discriminant": LinearDiscriminantAnalysis().fit(*iris),
    "network": make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=300, random_state=0)).fit(*iris),
    "network-binary": make_pipeline(StandardScaler(), MLPClassifier((6, 5), activation="tanh", max_iter=200, random_state=0)).fit(*cancer),
    "network-regression": make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(6,), activation="logistic", max_iter=200, random_state=0)).fit(*diabetes),
    "columns": make_pipeline(columns, LogisticRegression()).fit(mixed, bought),
    "one-hot-numbers": make_pipeline(
        ColumnTransformer([("codes", OneHotEncoder(drop="first"), [0, 1])], remainder=StandardScaler()), Ridge()
    ).fit(numbers, numbers[:, 2] * 2 + numbers[:, 0]),
    "union": make_pipeline(FeatureUnion([("pca", PCA(2)), ("svd", TruncatedSVD(2))]), LogisticRegression()).fit(*iris),
    "scaler": StandardScaler().fit(iris[0]),
}

folder = sys.argv[1]
for name, model in models.items():
    with open(os.path.join(folder, name + ".json"), "w") as file:
        json.dump(convert(model), file)
