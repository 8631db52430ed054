import { describe } from "vitest";
import { expectAnswers, useServer } from "./bad-inputs.js";

const server = useServer();
const one = { name: "IN", datatype: "FP32", shape: [1], data: [1] };

describe("wrong inputs and outputs", () => {
  expectAnswers(server, {
    "the same input twice": {
      body: { inputs: [one, one] },
      status: 400,
      text: "input 'IN' already exists in request",
    },
    "a surplus input": {
      body: { inputs: [one, { ...one, name: "EXTRA" }] },
      status: 400,
      text: "expected 1 inputs but got 2 inputs for model 'fp32'. Got input(s) ['IN','EXTRA'], but missing",
    },
    "another input": {
      body: { inputs: [{ ...one, name: "OTHER" }] },
      status: 400,
      text: "unexpected inference input 'OTHER' for model 'fp32'",
    },
    "no input": {
      body: { inputs: [] },
      status: 400,
      text: "expected 1 inputs but got 0 inputs for model 'fp32'. Got input(s) [], but missing required",
    },
    "another output": {
      body: { inputs: [one], outputs: [{ name: "OTHER" }] },
      status: 400,
      text: "unexpected inference output 'OTHER' for model 'fp32'",
    },
    "the same output twice": {
      body: { inputs: [one], outputs: [{ name: "OUT" }, { name: "OUT" }] },
      status: 200,
      text: '"data":[1.0]',
    },
    "4097 inputs": {
      body: { inputs: Array.from({ length: 4097 }, (_, i) => ({ ...one, name: `I${i}` })) },
      status: 400,
      text: "request has 4097 inputs, which exceeds the maximum allowed number of 4096",
    },
    "10 000 outputs": {
      body: { inputs: [one], outputs: Array.from({ length: 10_000 }, (_, i) => ({ name: `O${i}` })) },
      status: 400,
      text: "request has 10000 outputs, which exceeds the maximum allowed number of 4096",
    },
    "no source": {
      body: { inputs: [{ ...one, data: undefined }] },
      status: 400,
      text: "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters',",
    },
    "two sources": {
      body: { inputs: [{ ...one, parameters: { binary_data_size: 4 } }] },
      status: 400,
      text: "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters',",
    },
    "shared memory": {
      body: {
        inputs: [
          { ...one, data: undefined, parameters: { shared_memory_region: "r", shared_memory_byte_size: 4 } },
        ],
      },
      status: 404,
      text: "Unable to find shared memory region: 'r'",
    },
    "an output in shared memory": {
      body: { inputs: [one], outputs: [{ name: "OUT", parameters: { shared_memory_region: "r" } }] },
      status: 404,
      text: "Unable to find shared memory region: 'r'",
    },
    "classification of a string": {
      body: { inputs: [one], outputs: [{ name: "OUT", parameters: { classification: "x" } }] },
      status: 500,
      text: "Unable to set 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    "classification of strings": {
      model: "bytes",
      body: {
        inputs: [{ ...one, datatype: "BYTES", data: ["x"] }],
        outputs: [{ name: "OUT", parameters: { classification: 1 } }],
      },
      status: 400,
      text: "class result not available for output due to unsupported type 'BYTES'",
    },
    "classification of nothing": {
      body: {
        inputs: [{ ...one, shape: [0], data: [] }],
        outputs: [{ name: "OUT", parameters: { classification: 1 } }],
      },
      status: 200,
      text: '"data":[]',
    },
  });
});

describe("wrong parameters", () => {
  const parameters = (value: unknown) => ({ body: { inputs: [one], parameters: value } });
  expectAnswers(server, {
    "parameters that are not an object": {
      ...parameters([1]),
      status: 500,
      text: "failed to get request params.: attempt to get members for non-object",
    },
    "an object inside": {
      ...parameters({ a: { b: { c: 1 } } }),
      status: 400,
      text: "parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.",
    },
    "an array inside": {
      ...parameters({ a: [1] }),
      status: 400,
      text: "parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.",
    },
    "null inside": {
      ...parameters({ a: null }),
      status: 400,
      text: "parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.",
    },
    "a reserved name": {
      ...parameters({ triton_x: 1 }),
      status: 400,
      text: "parameter keys starting with 'triton_' are reserved for Triton usage and should not be",
    },
    "priority 0": { ...parameters({ priority: 0 }), status: 200, text: '"data":[1.0]' },
    "priority -1": {
      ...parameters({ priority: -1 }),
      status: 500,
      text: "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    'priority "1"': {
      ...parameters({ priority: "1" }),
      status: 500,
      text: "Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    "timeout NaN": {
      ...parameters({}),
      body: JSON.stringify(parameters({ timeout: "N" }).body).replace('"N"', "NaN"),
      status: 500,
      text: "Unable to parse 'timeout': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    "timeout 1e20": {
      ...parameters({ timeout: 1e20 }),
      status: 500,
      text: "Unable to parse 'timeout': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    "timeout that is a fraction": {
      ...parameters({ timeout: 1.5 }),
      status: 500,
      text: "Unable to parse 'timeout': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    "sequence_id 0": { ...parameters({ sequence_id: 0 }), status: 200, text: '"data":[1.0]' },
    'sequence_id ""': { ...parameters({ sequence_id: "" }), status: 200, text: '"data":[1.0]' },
    "sequence_id 1e30": {
      ...parameters({ sequence_id: 1e30 }),
      status: 500,
      text: "Unable to parse 'sequence_id': attempt to access JSON non-string as string",
    },
    "sequence_id of 129 letters": {
      ...parameters({ sequence_id: "x".repeat(129) }),
      status: 501,
      text: "string correlation ID cannot be longer than 128 characters",
    },
    "sequence_start 1": {
      ...parameters({ sequence_start: 1 }),
      status: 500,
      text: "Unable to parse 'sequence_start': attempt to access JSON non-boolean as boolean",
    },
    'binary_data_output "true"': {
      ...parameters({ binary_data_output: "true" }),
      status: 500,
      text: "Unable to parse 'binary_data_output': attempt to access JSON non-boolean as boolean",
    },
  });
});
