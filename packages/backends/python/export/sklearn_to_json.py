"""Writes a fitted model of scikit-learn as JSON, which `tritonjs repo add` and `tritonjs optimize` read.

    python sklearn_to_json.py model.pkl model.json

It takes linear models, networks of perceptrons, scalers, encoders, decompositions, and pipelines of them. The file has
sample rows with the answers of this model, by which the conversion is checked. A pickle can run any code: load only
those that you trust.
"""

import json
import sys

import numpy as np


class NotSupported(Exception):
    pass


def name_of(model):
    return type(model).__name__


def numbers(values):
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise NotSupported("a parameter is not a finite number")
    return array.tolist()


def expect(model, holds, text):
    if not holds:
        raise NotSupported("%s: %s" % (name_of(model), text))


# Transformers: a function of the fitted model for each class. All read rows of numbers, unless they are encoders.


def affine(offset, factor):
    return {"op": "affine", "offset": numbers(offset), "factor": numbers(factor)}


def standard_scaler(model):
    width = model.n_features_in_
    mean = np.zeros(width) if model.mean_ is None or not model.with_mean else model.mean_
    scale = np.ones(width) if model.scale_ is None or not model.with_std else model.scale_
    return [affine(mean, scale)]


def min_max_scaler(model):
    # x * scale_ + min_ in scikit-learn.
    steps = [{"op": "linear", "factor": numbers(model.scale_), "offset": numbers(model.min_)}]
    if model.clip:
        steps.append({"op": "clip", "low": float(model.feature_range[0]), "high": float(model.feature_range[1])})
    return steps


def max_abs_scaler(model):
    steps = [affine(np.zeros(model.n_features_in_), model.scale_)]
    if getattr(model, "clip", False):
        steps.append({"op": "clip", "low": -1.0, "high": 1.0})
    return steps


def robust_scaler(model):
    width = model.n_features_in_
    center = model.center_ if model.with_centering else np.zeros(width)
    scale = model.scale_ if model.with_scaling else np.ones(width)
    return [affine(center, scale)]


def normalizer(model):
    return [{"op": "normalize", "norm": model.norm}]


def binarizer(model):
    return [{"op": "binarize", "threshold": float(model.threshold)}]


def simple_imputer(model):
    expect(model, not model.add_indicator, "add_indicator is not converted")
    missing = model.missing_values
    is_nan = isinstance(missing, float) and np.isnan(missing)
    expect(model, is_nan, "expected missing_values=nan, got %r" % (missing,))
    try:
        statistics = np.asarray(model.statistics_, dtype=np.float64)
    except (TypeError, ValueError):
        raise NotSupported("SimpleImputer: texts are not converted")
    expect(model, not np.isnan(statistics).any(), "columns without any value are not converted")
    return [{"op": "impute", "values": numbers(statistics)}]


def pca(model):
    factor = model.components_.T
    if model.whiten:
        factor = factor / np.sqrt(model.explained_variance_)
    return [
        affine(model.mean_, np.ones(model.n_features_in_)),
        {"op": "matrix", "factor": numbers(factor)},
    ]


def truncated_svd(model):
    return [{"op": "matrix", "factor": numbers(model.components_.T)}]


def polynomial_features(model):
    return [{"op": "powers", "powers": np.asarray(model.powers_).tolist()}]


def selector(model):
    return [{"op": "columns", "columns": np.flatnonzero(model.get_support()).tolist()}]


def function_transformer(model):
    expect(model, model.func is None, "functions are not converted")
    return []


def categories_of(model):
    found = []
    for column in model.categories_:
        values = list(column)
        if all(isinstance(value, str) for value in values):
            found.append(values)
        elif all(isinstance(value, (int, float, np.integer, np.floating, np.bool_)) for value in values):
            found.append(numbers(values))
        else:
            raise NotSupported("%s: categories of several types, or None, are not converted" % name_of(model))
    return found


def one_hot_encoder(model):
    infrequent = getattr(model, "infrequent_categories_", None)
    expect(model, infrequent is None or all(one is None for one in infrequent), "infrequent categories are not converted")
    dropped = getattr(model, "drop_idx_", None)
    return [
        {
            "op": "one_hot",
            "categories": categories_of(model),
            "dropped": None if dropped is None else [None if one is None else int(one) for one in dropped],
        }
    ]


def ordinal_encoder(model):
    unknown = -1.0
    if model.handle_unknown == "use_encoded_value":
        expect(model, np.isfinite(model.unknown_value), "unknown_value=nan is not converted")
        unknown = float(model.unknown_value)
    infrequent = getattr(model, "infrequent_categories_", None)
    expect(model, infrequent is None or all(one is None for one in infrequent), "infrequent categories are not converted")
    return [{"op": "ordinal", "categories": categories_of(model), "unknown": unknown}]


def pipeline(model):
    steps = []
    for _, step in model.steps:
        if step is None or step == "passthrough":
            continue
        steps.extend(transform_or_predict(step))
    return steps


def column_transformer(model):
    expect(model, not getattr(model, "transformer_weights", None), "transformer_weights are not converted")
    names = list(getattr(model, "feature_names_in_", []))
    width = model.n_features_in_
    parts = []
    for _, step, columns in model.transformers_:
        places = column_places(model, columns, names, width)
        if isinstance(step, str) and step == "drop":
            continue
        if len(places) == 0:
            continue
        inner = [] if isinstance(step, str) else transform_or_predict(step)
        parts.append({"columns": places, "steps": inner})
    return [{"op": "union", "parts": parts}]


def column_places(model, columns, names, width):
    if callable(columns):
        raise NotSupported("ColumnTransformer: a function that chooses columns is not converted")
    if isinstance(columns, slice):
        start, stop = columns.start, columns.stop
        if isinstance(start, str) or isinstance(stop, str):
            first = 0 if start is None else names.index(start)
            last = width if stop is None else names.index(stop) + 1
            return list(range(first, last))
        return list(range(width))[columns]
    array = np.atleast_1d(np.asarray(columns))
    if array.dtype == bool:
        return np.flatnonzero(array).tolist()
    return [names.index(one) if isinstance(one, str) else int(one) % width for one in array.tolist()]


def feature_union(model):
    expect(model, not getattr(model, "transformer_weights", None), "transformer_weights are not converted")
    parts = []
    for _, step in model.transformer_list:
        if isinstance(step, str) and step == "drop":
            continue
        inner = [] if isinstance(step, str) else transform_or_predict(step)
        parts.append({"columns": None, "steps": inner})
    return [{"op": "union", "parts": parts}]


TRANSFORMERS = {
    "StandardScaler": standard_scaler,
    "MinMaxScaler": min_max_scaler,
    "MaxAbsScaler": max_abs_scaler,
    "RobustScaler": robust_scaler,
    "Normalizer": normalizer,
    "Binarizer": binarizer,
    "SimpleImputer": simple_imputer,
    "PCA": pca,
    "TruncatedSVD": truncated_svd,
    "PolynomialFeatures": polynomial_features,
    "SelectKBest": selector,
    "SelectPercentile": selector,
    "SelectFromModel": selector,
    "VarianceThreshold": selector,
    "RFE": selector,
    "FunctionTransformer": function_transformer,
    "OneHotEncoder": one_hot_encoder,
    "OrdinalEncoder": ordinal_encoder,
    "Pipeline": pipeline,
    "ColumnTransformer": column_transformer,
    "FeatureUnion": feature_union,
}

# Models at the end.


def linear_regression(model):
    factor = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)).T
    offset = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64).ravel(), (factor.shape[1],))
    return [{"op": "matrix", "factor": numbers(factor), "offset": numbers(offset)}, {"op": "regression"}]


def network(model):
    steps = []
    last = len(model.coefs_) - 1
    for i, (factor, offset) in enumerate(zip(model.coefs_, model.intercepts_)):
        steps.append({"op": "matrix", "factor": numbers(factor), "offset": numbers(offset)})
        if i < last and model.activation != "identity":
            steps.append({"op": "activation", "name": model.activation})
    return steps


def network_regression(model):
    expect(model, model.out_activation_ == "identity", "the output activation is not converted")
    return [*network(model), {"op": "regression"}]


def network_classifier(model):
    expect(model, model.out_activation_ in ("logistic", "softmax"), "the output activation is not converted")
    expect(model, not getattr(model, "_label_binarizer").y_type_.startswith("multilabel"), "several labels are not converted")
    return [*network(model), classes_step(model, None)]


def linear_classifier(model):
    factor = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64)).T
    offset = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64).ravel(), (factor.shape[1],))
    matrix = {"op": "matrix", "factor": numbers(factor), "offset": numbers(offset)}
    return [matrix, classes_step(model, factor.shape[0])]


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def softmax(values):
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def shares(values):
    return values / values.sum(axis=1, keepdims=True)


def huber(values):
    clipped = (np.clip(values, -1, 1) + 1) / 2
    total = clipped.sum(axis=1, keepdims=True)
    return np.where(total == 0, 1 / values.shape[1], clipped / np.where(total == 0, 1, total))


# How decisions become probabilities: by the number of decisions.
BINARY = {
    "sigmoid": lambda d: np.c_[1 - sigmoid(d), sigmoid(d)],
    "softmax": lambda d: softmax(np.c_[-d, d]),
    "huber": lambda d: np.c_[1 - (np.clip(d, -1, 1) + 1) / 2, (np.clip(d, -1, 1) + 1) / 2],
}
MULTI = {"softmax": softmax, "sigmoid": lambda d: shares(sigmoid(d)), "huber": huber}


def classes_step(model, width):
    labels = np.asarray(model.classes_)
    expect(model, labels.ndim == 1, "several targets are not converted")
    values = labels.tolist()
    is_text = all(isinstance(value, str) for value in values)
    is_whole = all(float(value).is_integer() for value in values) if not is_text else False
    expect(model, is_text or is_whole, "expected classes that are texts or whole numbers")
    step = {"op": "classes", "labels": values if is_text else [int(value) for value in values], "probabilities": None}
    if width is None:
        step["probabilities"] = "sigmoid" if len(values) == 2 else "softmax"
        return step
    if not hasattr(model, "predict_proba"):
        return step
    # The rule differs between versions and settings of scikit-learn, so it is found by trying.
    rows = np.random.default_rng(0).normal(size=(64, width)) * 2
    decisions = model.decision_function(rows)
    wanted = model.predict_proba(rows)
    for name, rule in (BINARY if decisions.ndim == 1 else MULTI).items():
        if np.allclose(rule(decisions), wanted, rtol=1e-9, atol=1e-12):
            step["probabilities"] = name
            return step
    raise NotSupported("%s: its probabilities follow from its decisions by no known rule" % name_of(model))


MODELS = {
    **dict.fromkeys(
        [
            "LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "LassoLars", "ElasticNet", "ElasticNetCV", "Lars",
            "BayesianRidge", "ARDRegression", "HuberRegressor", "SGDRegressor", "LinearSVR", "TheilSenRegressor",
            "PassiveAggressiveRegressor", "QuantileRegressor", "OrthogonalMatchingPursuit",
        ],
        linear_regression,
    ),
    **dict.fromkeys(
        [
            "LogisticRegression", "LogisticRegressionCV", "SGDClassifier", "LinearSVC", "RidgeClassifier",
            "RidgeClassifierCV", "Perceptron", "PassiveAggressiveClassifier", "LinearDiscriminantAnalysis",
        ],
        linear_classifier,
    ),
    "MLPRegressor": network_regression,
    "MLPClassifier": network_classifier,
}


def transform_or_predict(model):
    name = name_of(model)
    convert = TRANSFORMERS.get(name) or MODELS.get(name)
    if convert is None:
        advice = ""
        if name.endswith(("ForestClassifier", "ForestRegressor", "BoostingClassifier", "BoostingRegressor")) or "Tree" in name:
            advice = "; trees are written by trees/sklearn_to_treelite.py"
        known = ", ".join(sorted([*TRANSFORMERS, *MODELS]))
        raise NotSupported("%s is not converted: expected %s%s" % (name, known, advice))
    return convert(model)


def categories_by_column(steps, width):
    """Texts or numbers of each column that an encoder reads first; None for numbers without categories."""
    columns = [None] * width
    for step in steps[:1]:
        if step["op"] in ("one_hot", "ordinal"):
            columns = list(step["categories"])
        if step["op"] == "union":
            for part in step["parts"]:
                places = range(width) if part["columns"] is None else part["columns"]
                for place, found in zip(places, categories_by_column(part["steps"], len(list(places)))):
                    columns[place] = found or columns[place]
    return columns


def sample_rows(columns, count):
    random = np.random.default_rng(1)
    made = []
    for column in columns:
        if column is None:
            made.append((random.normal(size=count) * 2).tolist())
        else:
            made.append([column[i] for i in random.integers(len(column), size=count)])
    return [list(row) for row in zip(*made)]


def answers(model, rows, names):
    has_text = any(isinstance(value, str) for value in rows[0])
    if names:
        try:
            import pandas

            given = pandas.DataFrame(rows, columns=names)
        except ImportError:
            given = np.asarray(rows, dtype=object if has_text else np.float64)
    else:
        given = np.asarray(rows, dtype=object if has_text else np.float64)
    if not hasattr(model, "predict"):
        result = model.transform(given)
        return {"transformed": np.asarray(result.todense() if hasattr(result, "todense") else result).tolist()}
    predicted = np.asarray(model.predict(given))
    found = {"predicted": predicted.tolist()}
    if hasattr(model, "predict_proba"):
        found["probabilities"] = model.predict_proba(given).tolist()
    elif hasattr(model, "decision_function"):
        found["scores"] = np.asarray(model.decision_function(given)).reshape(len(rows), -1).tolist()
    return found


def convert(model):
    import sklearn

    steps = transform_or_predict(model)
    width = int(model.n_features_in_)
    columns = categories_by_column(steps, width)
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    rows = sample_rows(columns, 16)
    return {
        "tritonjs_sklearn": 1,
        "sklearn": sklearn.__version__,
        "model": name_of(model),
        "features": width,
        "names": names,
        "texts": [i for i, column in enumerate(columns) if column and isinstance(column[0], str)],
        "steps": steps,
        "samples": {"rows": rows, **answers(model, rows, names)},
    }


def load(path):
    try:
        import joblib
    except ImportError:
        import pickle

        with open(path, "rb") as file:
            return pickle.load(file)
    return joblib.load(path)


def main(arguments):
    if len(arguments) != 2:
        sys.exit("usage: python sklearn_to_json.py model.pkl model.json")
    path, target = arguments
    try:
        written = json.dumps(convert(load(path)), allow_nan=False)
    except NotSupported as error:
        sys.exit("cannot convert %s: %s" % (path, error))
    with open(target, "w") as file:
        file.write(written)


if __name__ == "__main__":
    main(sys.argv[1:])
