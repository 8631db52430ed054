"""Metrics of the model on the server's metrics page. They exist as long as the model's objects for them."""

import enum
import threading

from . import server
from .errors import TritonModelException


class MetricKind(enum.IntEnum):
    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2


class Metric:
    """The metric of a family with given labels. `MetricFamily.Metric` creates it."""

    def __init__(self, family, life, labels, buckets):
        self._life = life
        self._id = server.ask("metric", family, labels, buckets, failed="Error when creating Metric: ")

    def increment(self, value):
        self._ask("Failed to increment metric value: ", "increment", float(value))

    def set(self, value):
        self._ask("Failed to set metric value: ", "set", float(value))

    def observe(self, value):
        self._ask("Failed to observe metric value: ", "observe", float(value))

    def value(self):
        return float(self._ask("Failed to get metric value: ", "value"))

    def _ask(self, failed, what, *arguments):
        if self._life.over:
            raise TritonModelException(
                failed + "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The "
                "'MetricFamily' object should be deleted AFTER its corresponding 'Metric' objects have been deleted."
            )
        return server.ask(what, self._id, *arguments, failed=failed)

    def __del__(self):
        _forget("deleteMetric", getattr(self, "_id", None))


class _Life:
    """Whether a family still exists. Its metrics refer to this object, so that they do not keep the family alive."""

    over = False


class MetricFamily:
    """Metrics with the same name and different labels."""

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name, description, kind):
        self._life = _Life()
        self._kind = MetricKind(kind)
        self._id = server.ask(
            "family", name, description, self._kind.name, failed="Error when creating MetricFamily: "
        )

    def Metric(self, labels=None, buckets=None):
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        if buckets is None:
            if self._kind == MetricKind.HISTOGRAM:
                raise TritonModelException("Failed to create metric. Missing required buckets.")
        else:
            if not isinstance(buckets, list):
                raise TritonModelException("Failed to create metric. Buckets must be a list.")
            if self._kind != MetricKind.HISTOGRAM:
                raise TritonModelException("Failed to create metric. Unexpected buckets found.")
            buckets = [float(bound) for bound in buckets]
        texts = {str(name): str(value) for name, value in (labels or {}).items()}
        return Metric(self._id, self._life, texts, buckets)

    def __del__(self):
        if hasattr(self, "_life"):
            self._life.over = True
        _forget("deleteFamily", getattr(self, "_id", None))


def _forget(what, identity):
    channel = server.line.channel
    if identity is None or channel is None:
        return

    def tell():
        try:
            channel.send({"type": "forget", "what": what, "id": identity})
        except (OSError, RuntimeError):
            pass

    try:
        # The interpreter may free the object in the middle of a send.
        threading.Thread(target=tell, daemon=True).start()
    except RuntimeError:
        # The interpreter shuts down, and the process ends with it.
        pass
