"""From the encoder's frames to text: the tutorial's scoring, with NumPy and a search in Python.

A prefix beam search finds the likeliest texts, the model `decoder` scores them again, and the best one is the
transcript.
"""

import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils

from ctc import HotWords, Ngram, load_hot_words, load_vocabulary, prefix_beam_search, text_of

#: Longer hypotheses than sentences have are not scored again: the first one stands.
MOST_RESCORED = 200


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        dims = {one["name"]: one["dims"] for one in config["input"]}
        self.beam, self.features = dims["batch_log_probs"][-1], dims["encoder_out"][-1]
        parameters = {key: value["string_value"] for key, value in config["parameters"].items()}
        if parameters.get("bidecoder", "0") != "0":
            raise ValueError(f"parameter 'bidecoder': expected 0, got {parameters['bidecoder']}")
        self.cutoff = float(parameters.get("cutoff_prob", 0.9999))
        folder = os.path.dirname(os.path.abspath(__file__))
        path = parameters["vocabulary"]
        if not os.path.exists(path):
            # The tutorial's path belongs to its container. The same file lies beside this one.
            path = os.path.join(folder, os.path.basename(path))
        self.vocabulary = load_vocabulary(path, int(parameters.get("vocabulary_size", 0)))
        self.sos_eos = self.vocabulary.index("<sos/eos>")
        hot_words = self.named(parameters, "hotwords_path")
        self.hot = HotWords(load_hot_words(hot_words), self.vocabulary) if hot_words else None
        language = self.named(parameters, "lm_path")
        self.language = Ngram(language, self.vocabulary) if language else None

    def named(self, parameters, key):
        path = parameters.get(key, "None")
        return None if path in ("", "None") else path

    def execute(self, requests):
        tensor = lambda request, name: pb_utils.get_input_tensor_by_name(request, name).as_numpy()
        names = ("encoder_out", "encoder_out_lens", "batch_log_probs", "batch_log_probs_idx")
        inputs = [[tensor(request, name) for name in names] for request in requests]
        faults = [self.fault(*one[1:]) for one in inputs]
        texts = self.transcribe([one for one, fault in zip(inputs, faults) if fault is None])
        responses = []
        for (encoder_out, *_), fault in zip(inputs, faults):
            if fault is not None:
                error = pb_utils.TritonError(fault, pb_utils.TritonError.INVALID_ARG)
                responses.append(pb_utils.InferenceResponse([], error))
                continue
            rows, texts = texts[: len(encoder_out)], texts[len(encoder_out) :]
            output = np.array([[text.encode()] for text in rows], dtype=np.object_)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", output)]))
        return responses

    def fault(self, lengths, log_probs, ids):
        """What is wrong with a request; None if nothing is."""
        frames, last = log_probs.shape[1], len(self.vocabulary) - 1
        wrong = [length for length in lengths.reshape(-1) if not 0 <= length <= frames]
        if wrong:
            expected = f"expected 0 to {frames} frames, as input 'batch_log_probs' has, got {wrong[0]}"
            return f"input 'encoder_out_lens': {expected}"
        unknown = ids[(ids < 0) | (ids > last)]
        if unknown.size:
            return f"input 'batch_log_probs_idx': expected units of the vocabulary, 0 to {last}, got {unknown[0]}"
        return None

    def transcribe(self, inputs):
        """The texts of all rows."""
        hypotheses = []
        for _, lengths, log_probs, ids in inputs:
            for row, length in enumerate(lengths.reshape(-1)):
                frames = log_probs[row, :length].tolist(), ids[row, :length].tolist()
                hypotheses.append(prefix_beam_search(*frames, self.beam, self.cutoff, self.hot, self.language))
        longest = max((len(units) for one in hypotheses for _, units in one), default=0)
        if hypotheses and longest <= MOST_RESCORED:
            chosen = self.rescored(inputs, hypotheses)
        else:
            chosen = [0] * len(hypotheses)
        return [text_of(one[best][1], self.vocabulary) for one, best in zip(hypotheses, chosen)]

    def rescored(self, inputs, hypotheses):
        """Index of the best hypothesis of each row, as the model `decoder` finds it."""
        rows = len(hypotheses)
        frames = max(one[0].shape[1] for one in inputs)
        longest = max(len(units) for one in hypotheses for _, units in one)
        encoder_out = np.zeros((rows, frames, self.features), np.float32)
        encoder_out_lens = np.zeros((rows, 1), np.int32)
        padded = np.full((rows, self.beam, longest + 2), self.sos_eos, np.int64)
        lengths = np.ones((rows, self.beam), np.int32)
        scores = np.full((rows, self.beam), -np.inf, np.float32)
        first = 0
        for encoded, encoded_lens, _, _ in inputs:
            last = first + len(encoded)
            encoder_out[first:last, : encoded.shape[1]] = encoded
            encoder_out_lens[first:last, 0] = encoded_lens.reshape(-1)
            first = last
        for row, one in enumerate(hypotheses):
            for place, (score, units) in enumerate(one):
                padded[row, place, 1 : len(units) + 1] = units
                lengths[row, place] = len(units) + 1
                scores[row, place] = score
        request = pb_utils.InferenceRequest(
            model_name="decoder",
            requested_output_names=["best_index"],
            inputs=[
                pb_utils.Tensor("encoder_out", encoder_out),
                pb_utils.Tensor("encoder_out_lens", encoder_out_lens),
                pb_utils.Tensor("hyps_pad_sos_eos", padded),
                pb_utils.Tensor("hyps_lens_sos", lengths),
                pb_utils.Tensor("ctc_score", scores),
            ],
        )
        response = request.exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        return pb_utils.get_output_tensor_by_name(response, "best_index").as_numpy().reshape(-1).tolist()
