"""Parameters of a model's configuration."""

import contextlib
import os

import torch

from tritonjs_stub.errors import StubError

_TRUE = ("true", "1")
_FALSE = ("false", "0")


class Parameters:
    """Parameters by name, in the types that Triton reads."""

    def __init__(self, config):
        self._all = config.get("parameters", {})

    def text(self, name):
        return self._all[name]["string_value"] if name in self._all else None

    def flag(self, name, otherwise=None):
        text = self.text(name)
        if text is None:
            return otherwise
        if text.lower() in _TRUE:
            return True
        if text.lower() in _FALSE:
            return False
        raise StubError("failed to convert '" + text + "' to boolean")

    def number(self, *names):
        for name in names:
            text = self.text(name)
            if text is None:
                continue
            try:
                return int(text)
            except ValueError:
                raise StubError("failed to convert '" + text + "' to integral number") from None
        return 0


class Options:
    """Options of torch for one model. They hold for the process, which runs nothing else."""

    def __init__(self, config, device):
        parameters = Parameters(config)
        self._inference_mode = parameters.flag("INFERENCE_MODE", True)
        self._optimized = not parameters.flag("DISABLE_OPTIMIZED_EXECUTION", False)
        self._cleans = parameters.flag("ENABLE_CACHE_CLEANING", False)
        if parameters.flag("DISABLE_CUDNN", False):
            torch.backends.cudnn.enabled = False
        for name, change in (
            ("ENABLE_JIT_EXECUTOR", torch._C._jit_set_profiling_executor),
            ("ENABLE_JIT_PROFILING", torch._C._jit_set_profiling_mode),
            ("ENABLE_TENSOR_FUSER", torch._C._jit_set_texpr_fuser_enabled),
        ):
            value = parameters.flag(name)
            if value is not None:
                change(value)
        threads = parameters.number("INTRA_OP_THREAD_COUNT", "NUM_THREADS")
        # Without a count, the instances of a model share the cores.
        if threads <= 0 and device is not None and device.type == "cpu":
            threads = max(1, (os.cpu_count() or 1) // _instances(config))
        if threads > 0:
            torch.set_num_threads(threads)
        between = parameters.number("INTER_OP_THREAD_COUNT", "NUM_INTEROP_THREADS")
        if between > 0:
            torch.set_num_interop_threads(between)

    @contextlib.contextmanager
    def applied(self):
        """Runs a block with the options that torch has for one thread at a time."""
        without_gradients = torch.inference_mode() if self._inference_mode else torch.no_grad()
        with without_gradients, torch.jit.optimized_execution(self._optimized):
            yield

    def ran(self):
        if self._cleans and torch.cuda.is_available():
            torch.cuda.empty_cache()


def _instances(config):
    return max(1, sum(group.get("count", 1) for group in config.get("instance_group", ())))
