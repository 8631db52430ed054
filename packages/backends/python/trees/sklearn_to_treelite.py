"""Writes a fitted scikit-learn model as a Treelite 4 checkpoint, which the backend `fil` reads.

    from sklearn_to_treelite import save
    save(model, "checkpoint.tl")

or, for a model in a pickle or joblib file that you trust:

    python sklearn_to_treelite.py model.pkl checkpoint.tl

It takes decision trees, random forests, extra trees, and gradient boosting with its default initial estimator. It needs scikit-learn and numpy, and not Treelite.
"""
import struct
import sys

import numpy as np

BINARY, REGRESSION, MULTICLASS = 0, 1, 2
LESS_OR_EQUAL = 3
NUMERICAL, LEAF = 1, 0


class Writer:
    def __init__(self):
        self.parts = []

    def scalar(self, kind, value):
        self.parts.append(struct.pack("<" + kind, value))

    def array(self, values, dtype):
        values = np.ascontiguousarray(values, dtype=dtype)
        self.scalar("Q", values.size)
        self.parts.append(values.tobytes())

    def text(self, value):
        data = value.encode()
        self.scalar("Q", len(data))
        self.parts.append(data)


def write_tree(out, tree, leaf_of):
    """Writes one tree. `leaf_of(node)` gives the values of a leaf."""
    count = tree.node_count
    is_leaf = tree.children_left == -1
    leaves = [np.atleast_1d(leaf_of(node)) if is_leaf[node] else [] for node in range(count)]
    width = max(len(leaf) for leaf in leaves)
    missing = getattr(tree, "missing_go_to_left", np.zeros(count, dtype=np.uint8))
    out.scalar("i", count)
    out.scalar("?", False)
    out.array(np.where(is_leaf, LEAF, NUMERICAL), "i1")
    out.array(tree.children_left, "<i4")
    out.array(tree.children_right, "<i4")
    out.array(np.where(is_leaf, -1, tree.feature), "<i4")
    out.array(missing, "u1")
    out.array([leaf[0] if width == 1 and len(leaf) else 0 for leaf in leaves], "<f8")
    out.array(np.where(is_leaf, 0, tree.threshold), "<f8")
    out.array(np.where(is_leaf, 0, LESS_OR_EQUAL), "i1")
    out.array(np.zeros(count), "u1")
    if width == 1:
        out.array([], "<f8")
        begins = ends = np.zeros(count)
    else:
        out.array([value for leaf in leaves for value in leaf], "<f8")
        ends = np.cumsum([len(leaf) for leaf in leaves])
        begins = ends - [len(leaf) for leaf in leaves]
    out.array(begins, "<u8")
    out.array(ends, "<u8")
    out.array([], "<u4")
    out.array(np.zeros(count), "<u8")
    out.array(np.zeros(count), "<u8")
    out.array(tree.n_node_samples, "<u8")
    out.array(np.ones(count), "u1")
    out.array(tree.weighted_n_node_samples, "<f8")
    out.array(np.ones(count), "u1")
    out.array([], "<f8")
    out.array([], "u1")
    out.scalar("i", 0)
    out.scalar("i", 0)


def checkpoint(model):
    """Returns the bytes of the checkpoint of a fitted model."""
    name = type(model).__name__
    boosts = name.startswith("GradientBoosting")
    classes = len(model.classes_) if hasattr(model, "classes_") else 1
    if boosts:
        trees = [tree for row in model.estimators_ for tree in row]
        groups = 1 if classes <= 2 else classes
        base = np.ravel(model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32)))
        task = REGRESSION if classes == 1 else BINARY if classes == 2 else MULTICLASS
        link = ["", "identity", "sigmoid", "softmax"][min(classes, 3)]
        class_ids = [i % groups for i in range(len(trees))]
        width = 1
    elif name.startswith(("RandomForest", "ExtraTree", "DecisionTree")):
        trees = list(model.estimators_) if hasattr(model, "estimators_") else [model]
        groups, width = classes, classes
        base = np.zeros(groups)
        task = REGRESSION if classes == 1 else MULTICLASS
        link = "identity" if classes == 1 else "identity_multiclass"
        class_ids = [0 if classes == 1 else -1] * len(trees)
    else:
        raise TypeError(f"expected a forest, extra trees, a decision tree or gradient boosting, got {name}")
    if getattr(model, "n_outputs_", 1) != 1:
        raise TypeError(f"expected one output, got {model.n_outputs_}")
    out = Writer()
    for part in (4, 0, 0):
        out.scalar("i", part)
    out.scalar("B", 3)
    out.scalar("B", 3)
    out.scalar("Q", len(trees))
    out.scalar("i", model.n_features_in_)
    out.scalar("B", task)
    out.scalar("?", not boosts)
    out.scalar("i", 1)
    out.array([groups], "<i4")
    out.array([1, width], "<i4")
    out.array([0] * len(trees), "<i4")
    out.array(class_ids, "<i4")
    out.text(link)
    # With the exponential loss of AdaBoost, the sum is half of the logarithm of the odds.
    out.scalar("f", 2.0 if boosts and model.loss == "exponential" else 1.0)
    out.scalar("f", 1.0)
    out.array(base, "<f8")
    out.text("{}")
    out.scalar("i", 0)
    for estimator in trees:
        tree = estimator.tree_
        values = tree.value[:, 0, :]
        if boosts:
            write_tree(out, tree, lambda node: model.learning_rate * values[node])
        elif classes == 1:
            write_tree(out, tree, lambda node: values[node])
        else:
            write_tree(out, tree, lambda node: values[node] / values[node].sum())
    return b"".join(out.parts)


def save(model, path):
    """Writes a fitted model to a file."""
    with open(path, "wb") as file:
        file.write(checkpoint(model))


if __name__ == "__main__":
    import joblib

    save(joblib.load(sys.argv[1]), sys.argv[2])
