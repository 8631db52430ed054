import type { DataType, ErrorCode } from "@tritonjs/core";
import type { InferCall, NamedTensor, Way } from "./clients/client.js";
import { ERROR_CODES } from "./status.js";

/** A code and its text. */
export interface ExpectedError {
  readonly code: ErrorCode;
  readonly text: string;
}

/** A request that fails with the same code and text for every client. */
export interface RefusalCase extends ExpectedError {
  readonly title: string;
  readonly call: InferCall;
  /** Clients that cannot send this request. */
  readonly except?: readonly Way[];
  /** Clients that detect the error earlier or, in process, word it for their caller, and the error that they report. */
  readonly unlike?: Partial<Record<Way, ExpectedError>>;
}

const tensor = (name: string, datatype: DataType, shape: number[], elements: number[]): NamedTensor => ({
  name,
  datatype,
  shape,
  elements,
});
const fp32 = (name: string, shape: number[], elements: number[]) => tensor(name, "FP32", shape, elements);
const x = tensor("x", "INT32", [1], [1]);
const a = fp32("a", [1, 1], [1]);
const b = fp32("b", [1, 1], [1]);
const UNKNOWN_ID = "[request id: <id_unknown>] ";
const BATCH_NOTE =
  "NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be prepended to " +
  "each input shape. If you want to specify the full shape including the batch dim in your input dims config, " +
  "try setting max_batch_size to zero. See the model configuration docs for more info on max_batch_size.";

const jsonShapeMismatch: ExpectedError = {
  code: "INTERNAL",
  text: "Unable to parse 'data': Shape does not match true shape of 'data' field",
};

/** Requests that do not match the model. */
export const refusalCases: readonly RefusalCase[] = [
  {
    title: "an unknown model",
    call: { model: "nobody", inputs: [x] },
    code: "NOT_FOUND",
    text: "Request for unknown model: 'nobody' is not found",
  },
  {
    title: "an unknown version",
    call: { model: "versions", version: 9, inputs: [x] },
    code: "NOT_FOUND",
    text: "Request for unknown model: 'versions' version 9 is not found",
  },
  {
    title: "a wrong input name",
    call: { model: "pair", inputs: [a, fp32("c", [1, 1], [1])] },
    code: "INVALID_ARG",
    text: "unexpected inference input 'c' for model 'pair'",
    unlike: {
      "in process": { code: "INVALID_ARG", text: "model 'pair' has no input 'c': expected 'a', 'b'" },
    },
  },
  {
    title: "a missing input",
    call: { model: "pair", inputs: [b] },
    code: "INVALID_ARG",
    text:
      `${UNKNOWN_ID}expected 2 inputs but got 1 inputs for model 'pair'. Got input(s) ['b'], but missing required ` +
      "input(s) ['a']. Please provide all required input(s).",
    unlike: { "in process": { code: "INVALID_ARG", text: "model 'pair': missing input 'a'" } },
  },
  {
    title: "a missing input of a request with an id",
    call: { model: "pair", id: "r-7", inputs: [a] },
    code: "INVALID_ARG",
    text:
      "[request id: r-7] expected 2 inputs but got 1 inputs for model 'pair'. Got input(s) ['a'], but missing " +
      "required input(s) ['b']. Please provide all required input(s).",
    unlike: { "in process": { code: "INVALID_ARG", text: "model 'pair': missing input 'b'" } },
  },
  {
    title: "no inputs",
    call: { model: "pair", inputs: [] },
    code: "INVALID_ARG",
    text:
      `${UNKNOWN_ID}expected 2 inputs but got 0 inputs for model 'pair'. Got input(s) [], but missing required ` +
      "input(s) ['a','b']. Please provide all required input(s).",
    unlike: { "in process": { code: "INVALID_ARG", text: "model 'pair': missing input 'a', 'b'" } },
  },
  {
    title: "a surplus input",
    call: { model: "pair", inputs: [a, b, fp32("c", [1, 1], [1])] },
    code: "INVALID_ARG",
    text:
      `${UNKNOWN_ID}expected 2 inputs but got 3 inputs for model 'pair'. Got input(s) ['a','b','c'], but missing ` +
      "required input(s) []. Please provide all required input(s).",
    unlike: {
      "in process": { code: "INVALID_ARG", text: "model 'pair' has no input 'c': expected 'a', 'b'" },
    },
  },
  {
    title: "a wrong data type",
    call: { model: "rows_FP32", inputs: [tensor("x", "INT32", [1, 2], [1, 2])] },
    code: "INVALID_ARG",
    text: `${UNKNOWN_ID}inference input 'x' data-type is 'INT32', but model 'rows_FP32' expects 'FP32'`,
    // An in-process value has no data type of its own: it is an array of some class.
    unlike: {
      "in process": {
        code: "INVALID_ARG",
        text: "input 'x' of model 'rows_FP32' (FP32): expected Float32Array, got Int32Array",
      },
    },
  },
  {
    title: "a wrong dimension",
    call: { model: "rows_FP32", inputs: [fp32("x", [1, 3], [1, 2, 3])] },
    code: "INVALID_ARG",
    text:
      `${UNKNOWN_ID}unexpected shape for input 'x' for model 'rows_FP32'. Expected [-1,2], got [1,3]. ` +
      BATCH_NOTE,
    unlike: {
      "in process": {
        code: "INVALID_ARG",
        text: "input 'x' of model 'rows_FP32': expected shape [-1,2] with the batch axis, got [1,3]",
      },
    },
  },
  {
    title: "a wrong rank",
    call: { model: "matrix_FP32", inputs: [fp32("x", [4], [1, 2, 3, 4])] },
    code: "INVALID_ARG",
    text: `${UNKNOWN_ID}unexpected shape for input 'x' for model 'matrix_FP32'. Expected [-1,-1], got [4]. `,
    unlike: {
      "in process": {
        code: "INVALID_ARG",
        text: "input 'x' of model 'matrix_FP32': expected shape [-1,-1], got [4]",
      },
    },
  },
  {
    title: "a batch that is too large",
    call: { model: "rows_FP32", inputs: [fp32("x", [9, 2], Array(18).fill(1))] },
    code: "INVALID_ARG",
    text: `${UNKNOWN_ID}inference request batch-size must be <= 8 for 'rows_FP32'`,
    unlike: {
      "in process": {
        code: "INVALID_ARG",
        text: "batch of model 'rows_FP32': expected at most 8 rows, got 9",
      },
    },
  },
  {
    title: "inputs of different batch sizes",
    call: { model: "pair", inputs: [a, fp32("b", [2, 1], [1, 2])] },
    code: "INVALID_ARG",
    text: `${UNKNOWN_ID}input 'b' batch size does not match other inputs for 'pair'`,
    unlike: {
      "in process": {
        code: "INVALID_ARG",
        text: "input 'b' batch size does not match other inputs for 'pair'",
      },
    },
  },
  {
    title: "fewer elements than the shape says",
    call: { model: "rows_FP32", inputs: [fp32("x", [2, 2], [1, 2, 3])] },
    code: "INVALID_ARG",
    text: `${UNKNOWN_ID}input byte size mismatch for input 'x' for model 'rows_FP32'. Expected 16, got 12`,
    unlike: {
      "in process": {
        code: "INVALID_ARG",
        text: "input byte size mismatch for input 'x' for model 'rows_FP32'. Expected 16, got 12",
      },
      "HTTP JSON": jsonShapeMismatch,
    },
  },
  {
    title: "more elements than the shape says",
    call: { model: "rows_FP32", inputs: [fp32("x", [1, 2], [1, 2, 3])] },
    code: "INVALID_ARG",
    text: `${UNKNOWN_ID}input byte size mismatch for input 'x' for model 'rows_FP32'. Expected 8, got 12`,
    // An ndarray may be part of a larger array; elements beyond its shape do not belong to it.
    except: ["in process"],
    unlike: { "HTTP JSON": jsonShapeMismatch },
  },
  {
    title: "an unknown output",
    call: { model: "pair", inputs: [a, b], outputs: ["sum", "product"] },
    code: "INVALID_ARG",
    text: "unexpected inference output 'product' for model 'pair'",
    except: ["in process"],
  },
];

/** Requests that fail inside the model. */
export const failureCases: readonly RefusalCase[] = [
  ...ERROR_CODES.map((code) => ({
    title: `a callback that throws TritonError ${code}`,
    call: { model: "throws", inputs: [x], parameters: { code } },
    code,
    text: `the model says ${code}`,
  })),
  {
    title: "a callback that throws another error",
    call: { model: "throws", inputs: [x], parameters: { as: "plain Error" } },
    code: "INTERNAL",
    text: "x is not what it was",
    unlike: { "in process": { code: "INTERNAL", text: "model 'throws': x is not what it was" } },
  },
  {
    title: "a callback that returns an error for the request",
    call: { model: "throws", inputs: [x], parameters: { as: "result" } },
    code: "INTERNAL",
    text: "this request alone is wrong",
    unlike: { "in process": { code: "INTERNAL", text: "model 'throws': this request alone is wrong" } },
  },
  {
    title: "a callback that returns an output of a wrong shape",
    call: { model: "throws", inputs: [x], parameters: { as: "wrong output" } },
    code: "INTERNAL",
    text: "model 'throws' returned a wrong output 'y': expected shape [1], got [2]",
  },
];

/** 16-bit floats for clients without a form for them, and the error that they get. */
export const halfCases: readonly (RefusalCase & { readonly only: Way })[] = (
  ["FP16", "BF16"] as const
).flatMap((datatype) => {
  const call = { model: `matrix_${datatype}`, inputs: [tensor("x", datatype, [1, 2], [1, 2])] };
  const code = "INVALID_ARG" as const;
  return [
    {
      title: `${datatype} as JSON`,
      only: "HTTP JSON" as const,
      call,
      code,
      text: `receiving ${datatype} data via JSON is not supported. Please use the binary data format for input x`,
    },
    {
      title: `${datatype} as typed contents`,
      only: "gRPC typed" as const,
      call,
      code,
      text:
        `unexpected explicit tensor data for input tensor 'x' for model 'matrix_${datatype}' of type 'FP32', ` +
        `expected datatype '${datatype}'`,
    },
  ];
});
