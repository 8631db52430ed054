"""The module for Python models: `import triton_python_backend_utils as pb_utils`. Its interface is Triton's."""

from tritonjs_stub.answering import TRITONSERVER_RESPONSE_COMPLETE_FINAL, InferenceResponseSender  # noqa: F401
from tritonjs_stub.byte_tensors import deserialize_bytes_tensor, serialize_byte_tensor  # noqa: F401
from tritonjs_stub.calls import ResponseIterator  # noqa: F401
from tritonjs_stub.dtypes import numpy_to_triton_type, triton_string_to_numpy, triton_to_numpy_type  # noqa: F401
from tritonjs_stub.errors import TritonError, TritonModelException  # noqa: F401
from tritonjs_stub.lookups import (  # noqa: F401
    get_input_config_by_name,
    get_input_tensor_by_name,
    get_output_config_by_name,
    get_output_tensor_by_name,
    using_decoupled_model_transaction_policy,
)
from tritonjs_stub.metrics import Metric, MetricFamily, MetricKind  # noqa: F401
from tritonjs_stub.model_config import ModelConfig  # noqa: F401
from tritonjs_stub.model_file import get_model_dir  # noqa: F401
from tritonjs_stub.request import (  # noqa: F401
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
    TRITONSERVER_REQUEST_RELEASE_ALL,
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
    InferenceRequest,
    InferenceTrace,
    MemoryType,
    PreferredMemory,
)
from tritonjs_stub.response import InferenceResponse  # noqa: F401
from tritonjs_stub.server import Logger, LogLevel, is_model_ready, load_model, unload_model  # noqa: F401
from tritonjs_stub.shared_memory import SharedMemory, shared_memory  # noqa: F401
from tritonjs_stub.tensor import Tensor  # noqa: F401

TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU
TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU
TRITON_STRING_TO_NUMPY = {
    name: triton_string_to_numpy(name)
    for name in (
        "TYPE_BOOL",
        "TYPE_UINT8",
        "TYPE_UINT16",
        "TYPE_UINT32",
        "TYPE_UINT64",
        "TYPE_INT8",
        "TYPE_INT16",
        "TYPE_INT32",
        "TYPE_INT64",
        "TYPE_FP16",
        "TYPE_FP32",
        "TYPE_FP64",
        "TYPE_STRING",
    )
}
