import { NO_PARAMETERS, type Parameters, Tensor } from "@tritonjs/protocol";
import type { InferenceResponse, ReadyModel } from "@tritonjs/server";
import { SharedMemory } from "@tritonjs/server/internal";
import { describe, expect, it, test } from "vitest";
import {
  ALL_IN_BINARY,
  ALL_IN_JSON,
  decodeInferRequest,
  headerKey,
  knownHeader,
  type OutputForms,
} from "../../src/infer/infer-request.js";
import { encodeInferResponse } from "../../src/infer/infer-response.js";
import { identityConfig } from "../support/identity-service.js";

interface Answer {
  datatype?: "FP32" | "INT32";
  shape?: readonly number[];
  id?: string;
  modelVersion?: string;
  parameters?: Parameters;
}

const modelOf = () => ({ config: { maxBatchSize: 8 } }) as unknown as ReadyModel;

function encode(model: ReadyModel, answer: Answer = {}, forms: OutputForms = ALL_IN_BINARY) {
  const {
    datatype = "FP32",
    shape = [1, 2],
    id = "",
    modelVersion = "1",
    parameters = NO_PARAMETERS,
  } = answer;
  const count = shape.reduce((product, dim) => product * dim, 1);
  const values = datatype === "FP32" ? new Float32Array(count).fill(7) : new Int32Array(count).fill(7);
  const outputs = new Map([["y", Tensor.fromElements(datatype, shape, values)]]);
  const response: InferenceResponse = { modelName: "m", modelVersion, id, parameters, outputs };
  return encodeInferResponse(model, response, forms, () => undefined);
}

const textOf = (model: ReadyModel, answer?: Answer, forms?: OutputForms) =>
  encode(model, answer, forms).json.toString();

describe("known answers", () => {
  test("equal answers have equal JSON in memory of their own, and the tensors are those of each answer", () => {
    const model = modelOf();
    const first = encode(model);
    const second = encode(model);
    const third = encode(model);
    expect(second.json.equals(first.json)).toBe(true);
    // Whoever gets an answer may change its bytes.
    second.json.fill(0);
    expect(third.json.equals(first.json)).toBe(true);
    expect(encode(model).json.equals(first.json)).toBe(true);
    expect(third.tensors[0]).not.toBe(second.tensors[0]);
    expect(third.tensors.map(({ length }) => length)).toEqual([8]);
  });

  test.each<[string, Answer, OutputForms, string]>([
    ["data type", { datatype: "INT32" }, ALL_IN_BINARY, '"datatype":"INT32"'],
    ["shape", { shape: [2, 1] }, ALL_IN_BINARY, '"shape":[2,1]'],
    ["number of rows", { shape: [3, 2] }, ALL_IN_BINARY, '"binary_data_size":24'],
    ["version", { modelVersion: "2" }, ALL_IN_BINARY, '"model_version":"2"'],
    ["id", { id: "q" }, ALL_IN_BINARY, '"id":"q"'],
    ["parameters", { parameters: { a: 1 } }, ALL_IN_BINARY, '"parameters":{"a":1}'],
    ["form", {}, ALL_IN_JSON, '"data":[7.0,7.0]'],
  ])("an answer with another %s has JSON of its own, and changes no later one", (_, answer, forms, part) => {
    const model = modelOf();
    const usual = textOf(model);
    expect(textOf(model, answer, forms)).toContain(part);
    expect(textOf(model)).toBe(usual);
  });

  test("an empty output is announced and sends no bytes", () => {
    const model = modelOf();
    encode(model, { shape: [0, 2] });
    const { json, tensors } = encode(model, { shape: [0, 2] });
    expect(json.toString()).toContain('"binary_data_size":0');
    expect(tensors).toEqual([]);
  });

  test("a shape that changes after the answer does not change the JSON of later ones", () => {
    const model = modelOf();
    const shape = [1, 2];
    const before = textOf(model, { shape });
    shape[0] = 2;
    expect(textOf(model, { shape })).toContain('"shape":[2,2]');
    expect(textOf(model)).toBe(before);
  });
});

const noRegions = new SharedMemory(false);

const newModel = (): ReadyModel => ({
  name: "m",
  version: 1,
  config: identityConfig("m", "INT32"),
  labels: new Map(),
});

const header = (more: object = {}, shape = [2]) =>
  JSON.stringify({
    inputs: [{ name: "IN", datatype: "INT32", shape, parameters: { binary_data_size: 4 * (shape[0] ?? 0) } }],
    ...more,
  });

function decode(model: ReadyModel, json: string, ...elements: number[]) {
  const body = Buffer.concat([Buffer.from(json), Buffer.from(Int32Array.from(elements).buffer)]);
  return decodeInferRequest(model, body, Buffer.byteLength(json), 1 << 20, noRegions);
}

const isKnown = (model: ReadyModel, json: string): boolean =>
  knownHeader(model, headerKey(Buffer.from(json), json.length) ?? "") !== undefined;

describe("a repeated inference header", () => {
  it("gives the same request with other tensors", () => {
    const model = newModel();
    const json = header({
      parameters: { priority: 2, binary_data_output: true },
      outputs: [{ name: "OUT", parameters: { classification: 3 } }],
    });
    const first = decode(model, json, 1, 2);
    expect(isKnown(model, json)).toBe(true);
    const again = decode(model, json, 3, 4);
    expect(again.outputs).toEqual(first.outputs);
    expect({ ...again, inputs: 0, parameters: {} }).toEqual({ ...first, inputs: 0, parameters: {} });
    expect(again.inputs.get("IN")?.shape).toEqual([2]);
    expect(again.inputs.get("IN")?.shape).not.toBe(first.inputs.get("IN")?.shape);
    expect([...(again.inputs.get("IN")!.elements as Int32Array)]).toEqual([3, 4]);
    expect([...(first.inputs.get("IN")!.elements as Int32Array)]).toEqual([1, 2]);
  });

  it.each([
    ["few", [3], "unexpected size for input 'IN', expecting 4 additional bytes for model 'm'"],
    ["many", [3, 4, 5], "unexpected additional input data for model 'm'"],
  ])("is rejected for too %s bytes with the same text", (_, elements, message) => {
    const [fresh, model] = [newModel(), newModel()];
    decode(model, header(), 1, 2);
    expect(() => decode(fresh, header(), ...elements)).toThrow(message);
    expect(() => decode(model, header(), ...elements)).toThrow(message);
  });

  it("is remembered for one loaded model only", () => {
    const model = newModel();
    decode(model, header(), 1, 2);
    expect(isKnown(newModel(), header())).toBe(false);
  });
});

describe("an inference header is not remembered", () => {
  it.each([
    ["an id", header({ id: "7" })],
    ["parameters for the model", header({ parameters: { temperature: 1 } })],
    ["more bytes than a header has", header({ unused: "x".repeat(1024) })],
  ])("with %s", (_, json) => {
    const model = newModel();
    decode(model, json, 1, 2);
    expect(isKnown(model, json)).toBe(false);
    expect(decode(model, json, 3, 4).inputs.get("IN")?.byteLength).toBe(8);
  });

  it("when it has a fault", () => {
    const model = newModel();
    expect(() => decode(model, header(), 1)).toThrow("unexpected size");
    expect(isKnown(model, header())).toBe(false);
  });

  it("forever: when the memory is full, new headers replace all older ones", () => {
    const model = newModel();
    const headers = Array.from({ length: 65 }, (_, i) => header({ note: i }));
    for (const json of headers) decode(model, json, 1, 2);
    expect(headers.filter((json) => isKnown(model, json))).toEqual([headers[64]]);
  });
});
