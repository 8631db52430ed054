import {
  type DataType,
  elementByteSize,
  isDataType,
  type Shape,
  Tensor,
  TritonError,
  wireShape,
} from "@tritonjs/protocol";
import { InputTooLarge } from "../exchange/input-too-large.js";
import { asArray, member } from "../json/access.js";
import type { JsonArray, JsonValue } from "../json/json-value.js";
import { readNumbers } from "./read-numbers.js";
import { readStrings } from "./read-strings.js";
import { countElements } from "./shape.js";

const NO_BYTES = new Uint8Array(0);
const MAX_INT64 = 2n ** 63n - 1n;

/** The properties of an input that are known before its `data` is read. */
export interface JsonTensorHeader {
  readonly name: string;
  /** As the client wrote it. */
  readonly datatype: string;
  readonly shape: readonly (number | bigint)[];
  /** True when the model's input has no dimensions: the empty shape then means one element. */
  readonly scalar: boolean;
}

/**
 * Reads the tensor of an input with `data` in the JSON. The data of a tensor without elements is ignored and may be
 * missing.
 *
 * @throws TritonError for data that does not fit, and for tensors of more than `maxInputSize` bytes.
 */
export function readJsonTensor(header: JsonTensorHeader, input: JsonValue, maxInputSize: number): Tensor {
  const { name, datatype } = header;
  const shape = wireShape(header.shape);
  const scalar = header.scalar && shape.length === 0;
  const count = scalar ? 1n : countElements(name, header.shape);
  if (count === 0n) return Tensor.fromBytes(datatypeOf(datatype), shape, NO_BYTES);
  const data = asArray(member(input, "data", "Unable to parse 'data'"), "Unable to parse 'data'");
  if (datatype === "BYTES") return limited(name, readStrings(shape, data), maxInputSize);
  const size = isDataType(datatype) ? elementByteSize(datatype) : 0;
  checkByteSize(name, count, size, maxInputSize);
  return readElements(name, datatype, shape, Number(count), data);
}

/** The data type with this name; an unknown one is `<invalid>`, which no model expects. */
export function datatypeOf(name: string): DataType {
  return isDataType(name) ? name : ("<invalid>" as DataType);
}

/**
 * Reads a tensor of `count` elements of any data type but BYTES.
 *
 * @throws TritonError for data types without a JSON form, and for data that does not fit.
 */
export function readElements(
  name: string,
  datatype: string,
  shape: Shape,
  count: number,
  data: JsonArray,
): Tensor {
  if (!isDataType(datatype) || datatype === "BYTES") {
    throw new TritonError("INVALID_ARG", `invalid datatype for input ${name}`, { reason: "INVALID_INPUT" });
  }
  if (datatype === "FP16" || datatype === "BF16") {
    throw new TritonError(
      "INVALID_ARG",
      `receiving ${datatype} data via JSON is not supported. Please use the binary data format for input ${name}`,
      { reason: "INVALID_INPUT" },
    );
  }
  return readNumbers(datatype, shape, count, data);
}

function checkByteSize(name: string, count: bigint, elementSize: number, maxInputSize: number): void {
  const size = BigInt(elementSize);
  if (size > 1n && count > MAX_INT64 / size) {
    throw new TritonError(
      "INVALID_ARG",
      `byte size overflow for input '${name}': element count (${count}) * data type size (${size}) exceeds ` +
        `maximum allowed size (${MAX_INT64})`,
      { reason: "INVALID_INPUT" },
    );
  }
  checkLimit(name, BigInt.asUintN(64, count * size), maxInputSize);
}

function limited(name: string, tensor: Tensor, maxInputSize: number): Tensor {
  checkLimit(name, BigInt(tensor.byteLength), maxInputSize);
  return tensor;
}

function checkLimit(name: string, byteSize: bigint, maxInputSize: number): void {
  if (byteSize <= maxInputSize) return;
  throw new InputTooLarge(
    `JSON input '${name}' has a byte_size (${byteSize} bytes) that exceeds the maximum allowed value of ` +
      `${maxInputSize} bytes`,
  );
}
