import type { ReadyModel } from "@tritonjs/core/frontend";
import { elementByteSize, fromConfigDataType, Tensor, TritonError } from "@tritonjs/protocol";
import { InputTooLarge } from "../exchange/input-too-large.js";
import { DecodedRequest } from "./decoded-request.js";
import { ALL_IN_BINARY } from "./requested-outputs.js";

const PREFIX = "[request id: <id_unknown>] ";

/**
 * Decodes a raw request. The body is the only input of the model, its shape is deduced from the configuration, and all
 * outputs are returned in binary.
 *
 * @throws TritonError INVALID_ARG when the shape cannot be deduced or the body does not fit it.
 */
export function decodeRawRequest(model: ReadyModel, body: Uint8Array, maxInputSize: number): DecodedRequest {
  if (body.length > maxInputSize) {
    throw new InputTooLarge(
      `Raw input has a byte_size (${body.length} bytes) that exceeds the maximum allowed value of ` +
        `${maxInputSize} bytes`,
    );
  }
  const { config } = model;
  const input = config.input[0];
  if (input === undefined || config.input.length !== 1) {
    throw invalid(
      `Raw request must only have 1 input (found 1) to be deduced but got ${config.input.length} inputs in ` +
        `'${model.name}' model configuration`,
    );
  }
  const shape = config.maxBatchSize > 0 ? [1, ...input.dims] : [...input.dims];
  const tensor =
    input.dataType === "TYPE_STRING"
      ? rawString(input.name, input.dims, shape, body)
      : rawTensor(model, shape, body);
  const request = new DecodedRequest();
  request.inputs = new Map([[input.name, tensor]]);
  request.outputs = ALL_IN_BINARY;
  return request;
}

function rawString(name: string, dims: readonly number[], shape: number[], body: Uint8Array): Tensor {
  checkOneVariable(name, dims);
  if (dims.some((dim) => dim !== 1)) {
    throw invalid(`For BYTE datatype raw input '${name}', the model must have input shape [1]`);
  }
  return Tensor.fromElements("BYTES", shape, [body]);
}

function rawTensor(model: ReadyModel, shape: number[], body: Uint8Array): Tensor {
  const input = model.config.input[0]!;
  checkOneVariable(input.name, input.dims);
  const datatype = fromConfigDataType(input.dataType)!;
  const size = elementByteSize(datatype);
  const fixed = input.dims.reduce((product, dim) => (dim === -1 ? product : product * dim), 1);
  const variable = shape.indexOf(-1);
  if (variable >= 0) shape[variable] = fixed === 0 ? 0 : Math.floor(body.length / fixed / size);
  const expected = shape.reduce((product, dim) => product * dim, size);
  if (body.length !== expected) {
    throw invalid(
      `input byte size mismatch for input 'raw_input' for model '${model.name}'. Expected ${expected}, got ` +
        `${body.length}`,
    );
  }
  return Tensor.fromBytes(datatype, shape, body);
}

function checkOneVariable(name: string, dims: readonly number[]): void {
  if (dims.filter((dim) => dim === -1).length > 1) {
    throw invalid(
      `The shape of the raw input '${name}' can not be deduced because there are more than one variable-sized ` +
        "dimension",
    );
  }
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", PREFIX + message, { reason: "INVALID_INPUT" });
}
