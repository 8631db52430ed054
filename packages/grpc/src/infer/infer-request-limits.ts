import { TritonError } from "@tritonjs/protocol";
import { decodePacked, eachField, inference } from "@tritonjs/protocol/grpc";
import type { ReadyModel } from "@tritonjs/server";
import { invalidArgument } from "../status-from-code.js";
import type { RequestDecoder } from "../transport/method.js";

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

/** Most dimensions in the shape of an input. HTTP has the same limit. */
export const MAX_DIMENSIONS = 1024;

/**
 * Most fields of a request that are not among the parts above: values that should be packed but are not, and fields
 * that the server does not know. Each takes a fraction of a microsecond.
 */
export const MAX_OTHER_FIELDS = 65_536;

/** Counting ends here, far above every other limit. */
const MAX_COUNTED = 2 ** 18;

/** A counted part of a message takes at least one byte, so shorter messages are within every limit. */
const SHORTEST_COUNTED = MAX_DIMENSIONS;

/** Numbers of the counted fields of `ModelInferRequest`, and of the counted fields inside of them. */
const REQUEST = { modelName: 1, modelVersion: 2, parameters: 4, inputs: 5, outputs: 6, rawInputContents: 7 };
const INPUT = { name: 1, shape: 3, parameters: 4, contents: 5 };
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
      return decodePacked(inference.ModelInferRequest, bytes);
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
  /** Dimensions of the longest shape. */
  dimensions: number;
  others: number;
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
    dimensions: 0,
    others: 0,
  };
  let parts = 0;
  const addPart = (): void => {
    if (++parts > MAX_COUNTED) throw tooMany("parts", `more than ${MAX_COUNTED}`, MAX_COUNTED);
  };
  const addOther = (): void => {
    if (++counts.others > MAX_OTHER_FIELDS) {
      throw tooMany("other fields", `more than ${MAX_OTHER_FIELDS}`, MAX_OTHER_FIELDS);
    }
  };
  const countContents = (field: number): void => {
    if (field === CONTENTS.bytesContents) counts.strings++;
    else addPart();
  };
  let dimensions = 0;
  const countInput = (field: number, from: number, to: number): void => {
    addPart();
    if (field === INPUT.parameters) counts.tensorParameters++;
    else if (field === INPUT.contents) eachField(bytes, from, to, countContents, addOther);
    else if (field === INPUT.shape) dimensions += countVarints(bytes, from, to, MAX_DIMENSIONS - dimensions);
  };
  const countOtherOfInput = (field: number): void => {
    if (field === INPUT.shape) dimensions++;
    else addOther();
  };
  const countOutput = (field: number): void => {
    addPart();
    if (field === OUTPUT.parameters) counts.tensorParameters++;
  };
  eachField(
    bytes,
    0,
    bytes.length,
    (field, from, to) => {
      addPart();
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
          dimensions = 0;
          eachField(bytes, from, to, countInput, countOtherOfInput);
          counts.dimensions = Math.max(counts.dimensions, dimensions);
          break;
        case REQUEST.outputs:
          counts.outputs++;
          eachField(bytes, from, to, countOutput, addOther);
          break;
        case REQUEST.rawInputContents:
          counts.rawInputContents++;
          break;
      }
    },
    addOther,
  );
  return counts;
}

/** Counts varints, and stops when there are more than `most`: each ends with the only byte that is less than 128. */
function countVarints(bytes: Uint8Array, from: number, to: number, most: number): number {
  let count = 0;
  for (let at = from; at < to && count <= most; at++) if (bytes[at]! < 0x80) count++;
  return count;
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
  if (counts.dimensions > MAX_DIMENSIONS)
    throw tooMany("dimensions of an input", `more than ${MAX_DIMENSIONS}`, MAX_DIMENSIONS);
  if (Math.max(inputs, outputs, rawInputContents) <= MAX_TENSORS) return;
  const model = tensorsOfModel(counts, models);
  check("inputs", inputs, Math.max(MAX_TENSORS, model.inputs));
  check("raw_input_contents", rawInputContents, Math.max(MAX_TENSORS, model.inputs));
  check("outputs", outputs, Math.max(MAX_TENSORS, model.outputs));
}

function check(kind: string, count: number, limit: number): void {
  if (count > limit) throw tooMany(kind, count, limit);
}

function tooMany(kind: string, count: number | string, limit: number): TritonError {
  return invalidArgument(
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
