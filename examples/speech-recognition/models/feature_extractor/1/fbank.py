"""Log mel filter banks as Kaldi computes them, written out in NumPy.

Equal to torchaudio.compliance.kaldi.fbank with dither=0 and the other defaults of Kaldi: frames of 25 ms every 10 ms
that lie inside of the signal (snip_edges), without their mean, pre-emphasis of 0.97, Povey window, power spectrum of
the next power of two, triangles on the mel scale from 20 Hz to half the rate, natural logarithm of at least the
smallest step of FP32 above 1.
"""

import numpy as np

EPSILON = np.finfo(np.float32).eps


def mel_banks(bins: int, size: int, rate: int, low: float = 20.0) -> np.ndarray:
    """Triangles in mel, [bins, size / 2 + 1], rounded to FP32 at each step as in torchaudio.

    The last bin of the spectrum has no weight, as in Kaldi.
    """
    f = np.float32
    first, last = 1127.0 * np.log(1 + low / 700), 1127.0 * np.log(1 + rate / 2 / 700)
    step, left = f((last - first) / (bins + 1)), np.arange(bins, dtype=f)[:, None]
    left, centre, right = f(first) + left * step, f(first) + (left + f(1)) * step, f(first) + (left + f(2)) * step
    hertz = f(1) + f(rate / size) * np.arange(size // 2, dtype=f)[None] / f(700)
    at = f(1127) * np.log(hertz.astype(np.float64)).astype(f)
    rise, fall = (at - left) / (centre - left), (right - at) / (right - centre)
    return np.pad(np.maximum(f(0), np.minimum(rise, fall)), ((0, 0), (0, 1)))


class Fbank:
    """Filter banks of signals whose samples have the range of 16-bit integers."""

    def __init__(self, rate=16_000, bins=80, length_ms=25.0, shift_ms=10.0):
        self.length, self.shift = int(rate * length_ms / 1000), int(rate * shift_ms / 1000)
        self.size = 1 << (self.length - 1).bit_length()
        self.bins = bins
        steps = np.arange(self.length)
        self.window = (0.5 - 0.5 * np.cos(2 * np.pi * steps / (self.length - 1))) ** 0.85
        self.banks = mel_banks(bins, self.size, rate).T.astype(np.float64)

    def frames_of(self, samples: int) -> int:
        return 0 if samples < self.length else 1 + (samples - self.length) // self.shift

    def __call__(self, signal: np.ndarray) -> np.ndarray:
        """Filter banks of a signal, FP32 [frames, bins]."""
        count = self.frames_of(len(signal))
        if count == 0:
            return np.zeros((0, self.bins), np.float32)
        views = np.lib.stride_tricks.sliding_window_view(signal, self.length)[:: self.shift]
        frames = views.astype(np.float64)
        frames -= frames.mean(axis=1, keepdims=True)
        frames[:, 1:] -= 0.97 * frames[:, :-1]
        frames[:, 0] *= 1 - 0.97
        power = np.abs(np.fft.rfft(frames * self.window, self.size)) ** 2
        return np.log(np.maximum(power @ self.banks, EPSILON)).astype(np.float32)
