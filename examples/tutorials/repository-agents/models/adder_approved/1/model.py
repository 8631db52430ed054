import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            numbers = pb_utils.get_input_tensor_by_name(request, "NUMBERS").as_numpy()
            total = pb_utils.Tensor("SUM", np.sum(numbers, axis=1, keepdims=True))
            responses.append(pb_utils.InferenceResponse([total]))
        return responses
