"""Filter banks of speech: the tutorial's feature_extractor, with NumPy in place of kaldifeat and torch."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils

from fbank import Fbank

#: Seconds of audio that a request may have.
MOST_SECONDS = 120


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        number = lambda key, default: float(parameters[key]["string_value"]) if key in parameters else default
        self.rate = int(number("sample_rate", 16_000))
        bins, length = int(number("num_mel_bins", 80)), number("frame_length_in_ms", 25.0)
        self.fbank = Fbank(self.rate, bins, length, number("frame_shift_in_ms", 10.0))
        # tritonjs refuses longer audio by its shape, before it is copied to this process. Triton ignores the attribute.
        self.tritonjs_max_elements = {"wav": MOST_SECONDS * self.rate}

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        try:
            speech, lengths = self.features(
                pb_utils.get_input_tensor_by_name(request, "wav").as_numpy(),
                pb_utils.get_input_tensor_by_name(request, "wav_lens").as_numpy(),
            )
        except ValueError as error:
            return pb_utils.InferenceResponse([], pb_utils.TritonError(str(error), pb_utils.TritonError.INVALID_ARG))
        return pb_utils.InferenceResponse([pb_utils.Tensor("speech", speech), pb_utils.Tensor("speech_lengths", lengths)])

    def features(self, wavs, wav_lens):
        """Filter banks of each row, padded with zeros to those of the longest possible row."""
        rows, width = wavs.shape
        if rows * width > MOST_SECONDS * self.rate:
            seconds = rows * width / self.rate
            raise ValueError(f"input 'wav': expected at most {MOST_SECONDS} seconds of audio, got {seconds:.1f}")
        speech = np.zeros((rows, self.fbank.frames_of(width), self.fbank.bins), np.float32)
        lengths = np.zeros((rows, 1), np.int32)
        for row, (wav, count) in enumerate(zip(wavs, wav_lens[:, 0])):
            place = "" if rows == 1 else f", row {row}"
            if not 0 <= count <= width:
                expected = f"expected 0 to {width} samples, as input 'wav' has, got {count}"
                raise ValueError(f"input 'wav_lens'{place}: {expected}")
            signal = wav[:count]
            bad = np.flatnonzero(~np.isfinite(signal))
            if len(bad):
                value = {np.inf: "Infinity", -np.inf: "-Infinity"}.get(signal[bad[0]], "NaN")
                raise ValueError(f"input 'wav'{place}: expected finite samples, got {value} at {bad[0]}")
            # Kaldi works on the range of 16-bit integers.
            made = self.fbank(signal * np.float32(1 << 15))
            speech[row, : len(made)] = made
            lengths[row] = len(made)
        return speech, lengths
