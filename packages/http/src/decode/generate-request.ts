import type { ReadyModel } from "@tritonjs/core/frontend";
import {
  type DataType,
  fromConfigDataType,
  type ParameterValue,
  type Tensor,
  TritonError,
} from "@tritonjs/protocol";
import { asText, find, isArray, members } from "../json/access.js";
import { type JsonArray, JsonObject, type JsonValue } from "../json/json-value.js";
import { parseJson } from "../json/parse-json.js";
import { MAX_JSON_PARAMETERS, maxNumbers } from "../limits.js";
import { DecodedRequest } from "./decoded-request.js";
import { checkCount } from "./part-count.js";
import { readElements } from "./read-json-tensor.js";
import { readStrings } from "./read-strings.js";
import { readParameter } from "./request-parameters.js";

const NESTED = "parameters";

/** An input as generate requests need it: its shape includes the batch axis. */
interface GenerateInput {
  readonly datatype: DataType;
  readonly shape: readonly number[];
}

/**
 * Decodes a generate request: one object. Members with the name of an input become inputs, all others parameters. The
 * members of `parameters` count as if they were at the top.
 *
 * @throws TritonError with Triton's code and text for the first fault.
 */
export function decodeGenerateRequest(
  model: ReadyModel,
  body: Uint8Array,
  maxInputSize: number,
): DecodedRequest {
  return decodeGenerateJson(model, parseJson(body, maxNumbers(maxInputSize)));
}

/** Decodes a generate request that has been parsed, as {@link decodeGenerateRequest} does. */
export function decodeGenerateJson(model: ReadyModel, json: JsonValue): DecodedRequest {
  const idJson = find(json, "id");
  const request = new DecodedRequest();
  if (idJson !== undefined) request.id = asText(idJson, "Unable to parse 'id'");
  const reader = new GenerateReader(model, request.id);
  reader.read(json);
  request.inputs = reader.inputs;
  request.parameters = reader.parameters;
  return request;
}

class GenerateReader {
  readonly inputs = new Map<string, Tensor>();
  readonly parameters: Record<string, ParameterValue> = Object.create(null);
  readonly #known: ReadonlyMap<string, GenerateInput>;
  readonly #id: string;

  constructor(model: ReadyModel, id: string) {
    this.#id = id;
    const batch = model.config.maxBatchSize > 0 ? [-1] : [];
    this.#known = new Map(
      model.config.input.map(({ name, dataType, dims }) => [
        name,
        { datatype: fromConfigDataType(dataType)!, shape: [...batch, ...dims] },
      ]),
    );
  }

  read(object: JsonValue): void {
    const found = members(object);
    // A name that is written twice is read twice: the second time, the input exists already.
    checkCount("parameters", found.size, MAX_JSON_PARAMETERS + this.#known.size);
    for (const name of found.written()) {
      const value = found.get(name)!;
      if (name === NESTED) this.#readNested(value);
      else this.#readMember(name, value);
    }
  }

  #readNested(value: JsonValue): void {
    if (this.#known.has(NESTED)) {
      throw invalid(`Keyword '${NESTED}' for nested schema also given as input tensor name`);
    }
    if (!(value instanceof JsonObject)) {
      const fault = "attempt to access JSON non-object as object";
      throw new TritonError("INTERNAL", `Expected JSON object for keyword: '${NESTED}': ${fault}`, {
        reason: "MALFORMED_JSON",
      });
    }
    checkCount("parameters", value.size, MAX_JSON_PARAMETERS + this.#known.size);
    try {
      for (const name of value.written()) this.#readMember(name, value.get(name)!);
    } catch (thrown) {
      const { code, message, reason } = TritonError.from(thrown);
      throw new TritonError(code, `Converting keyword: '${NESTED}': ${message}`, { reason });
    }
  }

  #readMember(name: string, value: JsonValue): void {
    const input = this.#known.get(name);
    if (input === undefined) {
      if (name !== "id") this.parameters[name] = readParameter(name, value);
      return;
    }
    const tensor = readInput(name, input, value);
    if (this.inputs.has(name)) {
      throw invalid(`[request id: ${this.#id || "<id_unknown>"}] input '${name}' already exists in request`);
    }
    this.inputs.set(name, tensor);
  }
}

/** Makes a tensor of a value or an array of values. */
function readInput(name: string, { datatype, shape }: GenerateInput, value: JsonValue): Tensor {
  const data: JsonArray = isArray(value) ? value : [value];
  const count = data.length;
  if (datatype === "BYTES") return readStrings([count], data).reshaped(fitShape(name, shape, count));
  return readElements(name, datatype, fitShape(name, shape, count), count, data);
}

/**
 * The model's shape for `count` elements: the innermost open dimension takes the elements that the fixed ones leave.
 */
function fitShape(name: string, shape: readonly number[], count: number): number[] {
  const fixed = shape.reduce((product, dim) => (dim === -1 ? product : product * dim), 1);
  const open = shape.lastIndexOf(-1);
  if (count % fixed !== 0 || (open < 0 && count !== fixed)) {
    throw invalid(`The schema can not convert input '${name}' to tensor with proper shape`);
  }
  return shape.map((dim, axis) => (dim !== -1 ? dim : axis === open ? count / fixed : 1));
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT" });
}
