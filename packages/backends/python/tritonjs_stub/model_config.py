"""The configuration that `auto_complete_config` completes. The server holds it and applies the rules."""

import json

from . import server


class ModelConfig:
    """The known part of a model's configuration. Written values cannot change; a contradiction raises ValueError."""

    def __init__(self, model_config):
        self._model_config = json.loads(model_config)

    def as_dict(self):
        """Returns the configuration for reading."""
        return self._model_config

    def set_max_batch_size(self, max_batch_size):
        self._change("setMaxBatchSize", int(max_batch_size))

    def set_dynamic_batching(self):
        self._change("setDynamicBatching")

    def set_model_transaction_policy(self, transaction_policy_dict):
        self._change("setModelTransactionPolicy", dict(transaction_policy_dict))

    def add_input(self, input):
        self._change("addInput", dict(input))

    def add_output(self, output):
        self._change("addOutput", dict(output))

    def _change(self, how, *arguments):
        plain = json.loads(json.dumps(arguments, default=_plain))
        answer, _ = server.line.channel.call({"type": "change", "how": how, "arguments": plain})
        if "error" in answer:
            raise ValueError(answer["error"]["message"])
        self._model_config = json.loads(answer["value"])


def _plain(value):
    """Converts numpy's numbers and lists, and tuples, to JSON values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value)
