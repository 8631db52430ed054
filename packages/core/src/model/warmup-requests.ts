import { randomFillSync } from "node:crypto";
import {
  type DataType,
  elementByteSize,
  elementCount,
  encodeBytes,
  fromConfigDataType,
  type ModelConfig,
  type ModelWarmup,
  shapeToString,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";

import type { ReadDataFile } from "../files/data-file.js";
import type { ResponseHandler } from "../request/inference-request-init.js";
import { PendingRequest } from "../request/pending-request.js";

/** Prefix of Triton's error texts for the request of a sample, which has no id. */
const NO_ID = "[request id: <id_unknown>] ";

type WarmupInput = ModelWarmup["inputs"][string];

/**
 * Makes the requests of one warmup sample: `batchSize` requests of one row each, which run as one batch.
 *
 * @param readFile reads an `input_data_file`
 * @throws TritonError INVALID_ARG or INTERNAL if the data of an input cannot be made.
 */
export function warmupRequests(
  config: ModelConfig,
  sample: ModelWarmup,
  readFile: ReadDataFile,
  onResponse: ResponseHandler,
): PendingRequest[] {
  if (sample.batchSize === 0) return [];
  const inputs = new Map(
    Object.entries(sample.inputs).map(([name, input]) => [
      name,
      warmupTensor(name, input, config.maxBatchSize > 0 && !isShapeTensor(config, name), readFile),
    ]),
  );
  return Array.from(
    { length: sample.batchSize },
    () => new PendingRequest({ inputs }, config.name, onResponse),
  );
}

function isShapeTensor(config: ModelConfig, name: string): boolean {
  return config.input.some((input) => input.name === name && input.isShapeTensor);
}

function warmupTensor(name: string, input: WarmupInput, batched: boolean, readFile: ReadDataFile): Tensor {
  const datatype = fromConfigDataType(input.dataType);
  const open = `warmup setting expects all variable-size dimensions are specified for input '${name}'`;
  if (datatype === undefined) {
    throw new TritonError("INVALID_ARG", `${open}, which has data type '${input.dataType}'`, {
      reason: "WARMUP_FAILED",
    });
  }
  if (input.dims.includes(-1)) throw new TritonError("INVALID_ARG", open, { reason: "WARMUP_FAILED" });
  if (input.dims.some((dim) => dim < 0)) {
    const dims = shapeToString(input.dims);
    throw new TritonError("INVALID_ARG", `tensor '${name}' contains an invalid dimension ${dims}`, {
      reason: "WARMUP_FAILED",
    });
  }
  const bytes = warmupBytes(name, datatype, elementCount(input.dims), input, readFile);
  return Tensor.fromBytes(datatype, batched ? [1, ...input.dims] : input.dims, bytes);
}

function warmupBytes(
  name: string,
  datatype: DataType,
  count: number,
  { inputData, inputDataFile: file, randomData, zeroData }: WarmupInput,
  readFile: ReadDataFile,
): Uint8Array {
  if (inputData !== undefined) return new Uint8Array(inputData);
  if (file !== undefined) return fileBytes(file, readFile(file), datatype, count);
  if (randomData === undefined && zeroData === undefined) {
    const text = `${NO_ID}warmup setting expects input '${name}' to have input_data_type set`;
    throw new TritonError("INVALID_ARG", text, { reason: "WARMUP_FAILED" });
  }
  // Random text would have a random length, so BYTES are empty elements in either case.
  if (datatype === "BYTES") return encodeBytes(Array.from({ length: count }, () => new Uint8Array()));
  const bytes = new Uint8Array(count * elementByteSize(datatype));
  return randomData ? randomFillSync(bytes) : bytes;
}

function fileBytes(file: string, bytes: Uint8Array, datatype: DataType, count: number): Uint8Array {
  if (datatype === "BYTES") return bytes;
  const expected = count * elementByteSize(datatype);
  if (bytes.byteLength < expected) {
    throw new TritonError(
      "INVALID_ARG",
      `${NO_ID}warmup setting expects ${expected} bytes, but the data provided from ${file}only has ` +
        `${bytes.byteLength} bytes`,
      { reason: "WARMUP_FAILED" },
    );
  }
  return bytes.subarray(0, expected);
}
