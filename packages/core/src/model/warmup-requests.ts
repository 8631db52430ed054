import { randomFillSync } from "node:crypto";
import { readFileSync } from "node:fs";
import type { ModelConfig, ModelWarmup } from "../config/model-config.js";
import { TritonError } from "../errors/triton-error.js";
import { InferenceRequest } from "../request/inference-request.js";
import type { ResponseHandler } from "../request/inference-request-init.js";
import { encodeBytes } from "../tensor/bytes.js";
import { type DataType, elementByteSize, fromConfigDataType } from "../tensor/data-type.js";
import { elementCount } from "../tensor/shape.js";
import { Tensor } from "../tensor/tensor.js";

type WarmupInput = ModelWarmup["inputs"][string];

/**
 * The requests of one warmup sample: `batchSize` requests of one row each, which run as one batch.
 *
 * @throws TritonError INVALID_ARG or INTERNAL when the data of an input cannot be made.
 */
export function warmupRequests(
  config: ModelConfig,
  sample: ModelWarmup,
  onResponse: ResponseHandler,
): InferenceRequest[] {
  const inputs = new Map(
    Object.entries(sample.inputs).map(([name, input]) => [
      name,
      warmupTensor(name, input, config.maxBatchSize > 0 && !isShapeTensor(config, name)),
    ]),
  );
  return Array.from(
    { length: sample.batchSize },
    () => new InferenceRequest({ modelName: config.name, inputs, onResponse }),
  );
}

function isShapeTensor(config: ModelConfig, name: string): boolean {
  return config.input.some((input) => input.name === name && input.isShapeTensor);
}

function warmupTensor(name: string, input: WarmupInput, batched: boolean): Tensor {
  const datatype = fromConfigDataType(input.dataType);
  if (datatype === undefined) {
    throw new TritonError(
      "INVALID_ARG",
      `warmup setting has an unknown data type '${input.dataType}' for input '${name}'`,
    );
  }
  if (input.dims.includes(-1)) {
    throw new TritonError(
      "INVALID_ARG",
      `warmup setting expects all variable-size dimensions are specified for input '${name}'`,
    );
  }
  const bytes = warmupBytes(datatype, elementCount(input.dims), input);
  return Tensor.fromBytes(datatype, batched ? [1, ...input.dims] : input.dims, bytes);
}

function warmupBytes(datatype: DataType, count: number, input: WarmupInput): Uint8Array {
  if (input.inputData !== undefined) return new Uint8Array(input.inputData);
  if (input.inputDataFile !== undefined) return fileBytes(input.inputDataFile, datatype, count);
  // Random text would be of random length: BYTES are empty elements in either case.
  if (datatype === "BYTES") return encodeBytes(Array.from({ length: count }, () => new Uint8Array()));
  const bytes = new Uint8Array(count * elementByteSize(datatype));
  return input.randomData ? randomFillSync(bytes) : bytes;
}

function fileBytes(path: string, datatype: DataType, count: number): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = new Uint8Array(readFileSync(path));
  } catch (error) {
    throw new TritonError(
      "INTERNAL",
      `failed to open text file for read ${path}: ${TritonError.from(error).message}`,
      {
        cause: error,
      },
    );
  }
  if (datatype === "BYTES") return bytes;
  const expected = count * elementByteSize(datatype);
  if (bytes.byteLength < expected) {
    throw new TritonError(
      "INVALID_ARG",
      `warmup setting expects ${expected} bytes, but the data provided from ${path} only has ${bytes.byteLength} bytes`,
    );
  }
  return bytes.subarray(0, expected);
}
