import os

import numpy as np
import triton_python_backend_utils as pb_utils

from .falcon import Falcon


class TritonPythonModel:
    def initialize(self, args):
        self.falcon = Falcon(os.path.join(os.path.dirname(__file__), "weights.npz"))

    def execute(self, requests):
        responses = []
        for request in requests:
            prompts = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()
            texts = [self.falcon.generate(prompt.decode("utf-8")).encode("utf-8") for prompt in prompts.reshape(-1)]
            output = pb_utils.Tensor("text_output", np.array(texts, dtype=np.object_).reshape(prompts.shape))
            responses.append(pb_utils.InferenceResponse([output]))
        return responses
