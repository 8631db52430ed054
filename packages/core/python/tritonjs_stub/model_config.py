"""The configuration that `auto_complete_config` completes. The server has it, and the rules."""

import json

from . import server


class ModelConfig:
    """The configuration of a model as far as it is known. What is written in it stands; contradictions are ValueErrors."""

    def __init__(self, model_config):
        self._model_config = json.loads(model_config)

    def as_dict(self):
        """The configuration, to be looked at."""
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
        self._model_config = answer["value"]


def _plain(value):
    """Numbers and lists of numpy, and tuples, as JSON has them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value)
