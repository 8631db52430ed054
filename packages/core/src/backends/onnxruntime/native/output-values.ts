import { type DataType, elementCount, Tensor, TritonError, typedArrayFor } from "@tritonjs/protocol";
import { ONNX_BFLOAT16, ONNX_DATA_TYPES } from "../read-onnx.js";
import { typeAndShape } from "./native-tensors.js";
import type { OrtApi } from "./ort-api.js";

/**
 * Copies an output that ONNX Runtime has allocated, because its shape was not known before the run.
 *
 * @param value address of the output, which the caller releases
 * @throws TritonError UNSUPPORTED for types that the protocol does not have
 */
export function copyOutput(api: OrtApi, name: string, value: number): Tensor {
  const info = api.read((to) => api.getTensorTypeAndShape(value, to));
  try {
    const { elementType, dims } = typeAndShape(api, info);
    const datatype = outputDataType(name, elementType);
    if (datatype === "BYTES")
      return Tensor.fromElements("BYTES", dims, strings(api, value, elementCount(dims)));
    const elements = new (typedArrayFor(datatype))(elementCount(dims));
    if (elements.byteLength > 0) {
      const from = api.read((to) => api.getTensorMutableData(value, to));
      api.copy(Number(api.koffi.address(elements)), from, elements.byteLength);
    }
    return Tensor.fromElements(datatype, dims, elements);
  } finally {
    api.releaseTensorTypeAndShapeInfo(info);
  }
}

/** @throws TritonError UNSUPPORTED for types that the protocol does not have */
export function outputDataType(name: string, elementType: number): DataType {
  const datatype = elementType === ONNX_BFLOAT16 ? "BF16" : ONNX_DATA_TYPES[elementType];
  if (datatype !== undefined) return datatype;
  throw new TritonError(
    "UNSUPPORTED",
    `output '${name}' has ONNX type ${elementType}, which the protocol cannot carry`,
    { reason: "MODEL_NOT_SUPPORTED" },
  );
}

function strings(api: OrtApi, value: number, count: number): Uint8Array[] {
  if (count === 0) return [];
  const length = api.read((to) => api.getStringTensorDataLength(value, to));
  // At least a byte, because an empty array has no address.
  const bytes = new Uint8Array(length + 1);
  const offsets = new BigUint64Array(count);
  const [to, at] = [bytes, offsets].map((array) => Number(api.koffi.address(array))) as [number, number];
  api.check(api.getStringTensorContent(value, to, length, at, count));
  return Array.from(offsets, (start, i) =>
    bytes.subarray(Number(start), i + 1 < count ? Number(offsets[i + 1]) : length),
  );
}
