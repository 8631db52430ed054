import numpy as np
import triton_python_backend_utils as pb_utils

LEAST_SCORE = 0.5
CELL = 8
FACE = 48


class TritonPythonModel:
    """Finds faces with one network, and describes each of them with another."""

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        image = pb_utils.get_input_tensor_by_name(request, "image").as_numpy()
        if min(image.shape[:2]) < FACE:
            message = f"input 'image': expected at least {FACE} pixels a side, got {image.shape[1]}x{image.shape[0]}"
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG))
        pixels = image.transpose(2, 0, 1).astype(np.float32) / 255
        boxes, scores = best_boxes(call("face_finder", "image", pixels[None], "cells")[0])
        # One call for each face, as the tutorial does it: facenet batches them with those of other requests.
        embeddings = [call("facenet", "face", crop(pixels, box)[None], "embedding")[0] for box in boxes]
        return pb_utils.InferenceResponse(
            output_tensors=[
                pb_utils.Tensor("boxes", boxes),
                pb_utils.Tensor("scores", scores),
                pb_utils.Tensor("embeddings", np.array(embeddings, np.float32).reshape(-1, 16)),
            ]
        )


def call(model, input_name, value, output_name):
    tensor = pb_utils.Tensor(input_name, np.ascontiguousarray(value))
    request = pb_utils.InferenceRequest(model_name=model, inputs=[tensor], requested_output_names=[output_name])
    response = request.exec()
    if response.has_error():
        raise pb_utils.TritonModelException(response.error().message())
    return pb_utils.get_output_tensor_by_name(response, output_name).as_numpy()


def best_boxes(cells):
    """Boxes (left, top, right, bottom) of the cells that see the middle of a face, without boxes that share a face."""
    logits, x, y, size = cells
    found = 1 / (1 + np.exp(-logits))
    rows, columns = np.nonzero(found > LEAST_SCORE)
    order = np.argsort(-found[rows, columns])
    kept = []
    for row, column in zip(rows[order], columns[order]):
        centre_x, centre_y = CELL * (column + x[row, column]), CELL * (row + y[row, column])
        radius = 16 * np.exp(size[row, column])
        if all(np.hypot(centre_x - a, centre_y - b) > 0.8 * max(radius, r) for a, b, r, _ in kept):
            kept.append((centre_x, centre_y, radius, found[row, column]))
    kept.sort()
    boxes = np.array([(a - r, b - 1.2 * r, a + r, b + 1.2 * r) for a, b, r, _ in kept], np.float32).reshape(-1, 4)
    return boxes, np.array([score for *_, score in kept], np.float32)


def crop(pixels, box):
    """The face as 48x48 pixels, with a margin, by the nearest pixels."""
    left, top, right, bottom = box
    side = 1.4 * (right - left)
    middle_x, middle_y = (left + right) / 2, (top + bottom) / 2
    steps = (np.arange(FACE) + 0.5) / FACE - 0.5
    columns = np.clip(np.round(middle_x + side * steps), 0, pixels.shape[2] - 1).astype(int)
    rows = np.clip(np.round(middle_y + side * steps), 0, pixels.shape[1] - 1).astype(int)
    return pixels[:, rows][:, :, columns]
