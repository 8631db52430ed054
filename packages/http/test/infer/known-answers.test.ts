import type { InferenceResponse, ReadyModel } from "@tritonjs/core/frontend";
import { NO_PARAMETERS, type Parameters, Tensor } from "@tritonjs/protocol";
import { expect, test } from "vitest";
import { ALL_IN_BINARY, ALL_IN_JSON, type OutputForms } from "../../src/infer/infer-request.js";
import { encodeInferResponse } from "../../src/infer/infer-response.js";

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
