import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Brings each row of its input to mean 0 and deviation 1."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        auto_complete_model_config.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [-1]})
        auto_complete_model_config.add_output({"name": "y", "data_type": "TYPE_FP32", "dims": [-1]})
        auto_complete_model_config.set_max_batch_size(16)
        auto_complete_model_config.set_dynamic_batching()
        return auto_complete_model_config

    def initialize(self, args):
        output = pb_utils.get_output_config_by_name(json.loads(args["model_config"]), "y")
        self.dtype = pb_utils.triton_string_to_numpy(output["data_type"])

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
        deviation = x.std(axis=1, keepdims=True)
        if not deviation.all():
            error = pb_utils.TritonError("a row of equal numbers has no deviation", pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=error)
        y = (x - x.mean(axis=1, keepdims=True)) / deviation
        return pb_utils.InferenceResponse([pb_utils.Tensor("y", y.astype(self.dtype))])
