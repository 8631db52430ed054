import {
  elementByteSize,
  elementCount,
  scanBytes,
  type Tensor,
  TritonError,
  wrappedElementCount,
} from "@tritonjs/protocol";

/** The request in the texts of errors. */
export interface CheckedRequest {
  /** Start of a text that names the request. */
  readonly logPrefix: string;
}

/**
 * Checks that the bytes of an input are the elements of a shape.
 *
 * @param shape shape whose elements count, which may differ from that of the tensor
 * @throws TritonError INVALID_ARG for the first fault found.
 */
export function checkByteSize(
  request: CheckedRequest,
  model: string,
  name: string,
  tensor: Tensor,
  shape: readonly number[],
): void {
  if (tensor.datatype === "BYTES") {
    checkElements(request, model, name, tensor, elementCount(shape));
    return;
  }
  const size = elementByteSize(tensor.datatype);
  let expected: number | bigint;
  try {
    expected = elementCount(shape) * size;
  } catch (uncountable) {
    // The text has the size that Triton calculates in 64 bits. Bytes that happen to match it are refused all the same.
    expected = BigInt.asIntN(64, wrappedElementCount(shape) * BigInt(size));
    if (expected === BigInt(tensor.byteLength)) {
      const { message } = uncountable as TritonError;
      throw invalid(`${request.logPrefix}input '${name}' of model '${model}': ${message}`);
    }
  }
  if (tensor.byteLength === expected) return;
  throw invalid(
    `${request.logPrefix}input byte size mismatch for input '${name}' for model '${model}'. ` +
      `Expected ${expected}, got ${tensor.byteLength}`,
  );
}

/** Checks the elements of a BYTES tensor. */
function checkElements(
  request: CheckedRequest,
  model: string,
  name: string,
  tensor: Tensor,
  count: number,
): void {
  const where = `for inference input '${name}' for model '${model}'`;
  const scan = tensor.hasElements
    ? { elements: (tensor.elements as Uint8Array[]).length }
    : scanBytes(tensor.bytes, count);
  if (scan.lengthBytesLeft !== undefined) {
    throw invalid(
      `${request.logPrefix}incomplete string length indicator ${where}, expecting 4 bytes but only ` +
        `${scan.lengthBytesLeft} bytes available. Please make sure the string length indicator is in one buffer.`,
    );
  }
  if (scan.elements > count) {
    throw invalid(
      `${request.logPrefix}unexpected number of string elements ${scan.elements} ${where}, expecting ${count}`,
    );
  }
  if (scan.truncated !== undefined) {
    const { expected, available } = scan.truncated;
    throw invalid(
      `incomplete string data for inference input '${name}', expecting string of length ${expected} but only ` +
        `${available} bytes available`,
    );
  }
  if (scan.elements !== count) {
    throw invalid(`${request.logPrefix}expected ${count} string elements ${where}, got ${scan.elements}`);
  }
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT" });
}
