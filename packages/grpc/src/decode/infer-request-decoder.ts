import type { ReadyModel } from "@tritonjs/core/frontend";
import { decodeMessage, eachField, inference } from "@tritonjs/grpc-messages";
import { TritonError } from "@tritonjs/protocol";
import type { RequestDecoder } from "../transport/method.js";
import { invalidArgument } from "./invalid-argument.js";

/** Most inputs, and most requested outputs, of a request, unless its model has more. HTTP has the same limit. */
const MAX_TENSORS = 4096;

/** Most parameters of a request. Each becomes a property of one object, which takes microseconds. */
export const MAX_PARAMETERS = 4096;

/** Most parameters of all tensors of a request together. Shared memory takes three for each tensor. */
export const MAX_TENSOR_PARAMETERS = 4 * MAX_TENSORS;

/** Most elements in `bytes_contents` of a request: as many as values in a JSON document over HTTP. */
export const MAX_STRINGS = 2 ** 21;

/** The part of the service that knows how many tensors a model has. */
interface Models {
  model(name: string, version: string): Pick<ReadyModel, "config">;
}

/** A counted part of a message takes at least two bytes, so shorter messages are within every limit. */
const SHORTEST_COUNTED = 2 * Math.min(MAX_TENSORS, MAX_PARAMETERS);

/** Numbers of the counted fields of `ModelInferRequest`, and of the counted fields inside of them. */
const REQUEST = { modelName: 1, modelVersion: 2, parameters: 4, inputs: 5, outputs: 6, rawInputContents: 7 };
const INPUT = { parameters: 4, contents: 5 };
const OUTPUT = { parameters: 2 };
const CONTENTS = { bytesContents: 8 };

/**
 * Makes a decoder for infer requests. It counts the parts of a request first: decoding a part takes a hundred times
 * longer than sending it.
 */
export function inferRequestDecoder(models: Models): RequestDecoder<inference.ModelInferRequest> {
  return {
    decodeRequest: (bytes) => {
      if (bytes.length >= SHORTEST_COUNTED) checkCounts(countParts(bytes), models);
      return decodeMessage(inference.ModelInferRequest, bytes);
    },
  };
}

interface PartCounts {
  modelName: string;
  modelVersion: string;
  inputs: number;
  outputs: number;
  rawInputContents: number;
  parameters: number;
  tensorParameters: number;
  strings: number;
}

function countParts(bytes: Uint8Array): PartCounts {
  const counts: PartCounts = {
    modelName: "",
    modelVersion: "",
    inputs: 0,
    outputs: 0,
    rawInputContents: 0,
    parameters: 0,
    tensorParameters: 0,
    strings: 0,
  };
  const countContents = (field: number): void => {
    if (field === CONTENTS.bytesContents) counts.strings++;
  };
  const countInput = (field: number, from: number, to: number): void => {
    if (field === INPUT.parameters) counts.tensorParameters++;
    else if (field === INPUT.contents) eachField(bytes, from, to, countContents);
  };
  const countOutput = (field: number): void => {
    if (field === OUTPUT.parameters) counts.tensorParameters++;
  };
  eachField(bytes, 0, bytes.length, (field, from, to) => {
    switch (field) {
      case REQUEST.modelName:
        counts.modelName = text(bytes, from, to);
        break;
      case REQUEST.modelVersion:
        counts.modelVersion = text(bytes, from, to);
        break;
      case REQUEST.parameters:
        counts.parameters++;
        break;
      case REQUEST.inputs:
        counts.inputs++;
        eachField(bytes, from, to, countInput);
        break;
      case REQUEST.outputs:
        counts.outputs++;
        eachField(bytes, from, to, countOutput);
        break;
      case REQUEST.rawInputContents:
        counts.rawInputContents++;
        break;
    }
  });
  return counts;
}

function text(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString();
}

/** @throws TritonError INVALID_ARG when a request exceeds one of the limits. */
function checkCounts(counts: PartCounts, models: Models): void {
  const { inputs, outputs, rawInputContents } = counts;
  check("parameters", counts.parameters, MAX_PARAMETERS);
  check("parameters of tensors", counts.tensorParameters, MAX_TENSOR_PARAMETERS);
  check("elements in bytes_contents", counts.strings, MAX_STRINGS);
  if (Math.max(inputs, outputs, rawInputContents) <= MAX_TENSORS) return;
  const model = tensorsOfModel(counts, models);
  check("inputs", inputs, Math.max(MAX_TENSORS, model.inputs));
  check("raw_input_contents", rawInputContents, Math.max(MAX_TENSORS, model.inputs));
  check("outputs", outputs, Math.max(MAX_TENSORS, model.outputs));
}

function check(kind: string, count: number, limit: number): void {
  if (count <= limit) return;
  throw invalidArgument(
    `request has ${count} ${kind}, which exceeds the maximum allowed number of ${limit}`,
    "REQUEST_TOO_LARGE",
  );
}

function tensorsOfModel({ modelName, modelVersion }: PartCounts, models: Models) {
  try {
    const { config } = models.model(modelName, modelVersion);
    return { inputs: config.input.length, outputs: config.output.length };
  } catch (error) {
    if (!TritonError.is(error)) throw error;
    return { inputs: 0, outputs: 0 };
  }
}
