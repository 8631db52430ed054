import { describe } from "vitest";
import { expectAnswers, useServer } from "./bad-inputs.js";

const server = useServer();
const request = (members: object, more: object = {}) => ({
  inputs: [{ name: "IN", datatype: "FP32", shape: [1], ...members }],
  ...more,
});
const shape = (value: unknown) => request({ shape: value, data: [1] });

describe("wrong shapes", () => {
  expectAnswers(server, {
    missing: {
      body: { inputs: [{ name: "IN", datatype: "FP32", data: [1] }] },
      status: 500,
      text: "Unable to parse 'shape': attempt to access non-existing object member 'shape'",
    },
    null: {
      body: shape(null),
      status: 500,
      text: "Unable to parse 'shape': attempt to access JSON non-array as array",
    },
    "a string": {
      body: shape("1"),
      status: 500,
      text: "Unable to parse 'shape': attempt to access JSON non-array as array",
    },
    "a number": {
      body: shape(1),
      status: 500,
      text: "Unable to parse 'shape': attempt to access JSON non-array as array",
    },
    strings: {
      body: shape(["1"]),
      status: 500,
      text: "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    floats: {
      body: shape([1.5]),
      status: 500,
      text: "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    "a whole float": {
      body: '{"inputs":[{"name":"IN","datatype":"FP32","shape":[1.0],"data":[1]}]}',
      status: 500,
      text: "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    negative: {
      body: shape([-1]),
      status: 500,
      text: "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    nested: {
      body: shape([[1]]),
      status: 500,
      text: "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    huge: {
      body: shape([2 ** 40]),
      status: 400,
      text: "JSON input 'IN' has a byte_size (4398046511104 bytes) that exceeds the maximum allowed value of",
    },
    "beyond 64 bits": {
      body: '{"inputs":[{"name":"IN","datatype":"FP32","shape":[99999999999999999999],"data":[1]}]}',
      status: 500,
      text: "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
    },
    "2^63 and more": {
      body: '{"inputs":[{"name":"IN","datatype":"FP32","shape":[9223372036854775808],"data":[1]}]}',
      status: 400,
      text: "invalid shape for input 'IN': shape [-9223372036854775808] contains one or more invalid",
    },
    "300 dimensions": {
      body: shape(Array(300).fill(1)),
      status: 400,
      text: "unexpected shape for input 'IN' for model 'fp32'. Expected [-1], got",
    },
    "a product that overflows": {
      body: shape([2 ** 32, 2 ** 32, 2 ** 32]),
      status: 400,
      text: "invalid shape for input 'IN': shape [4294967296,4294967296,4294967296] causes total element",
    },
    "a product that overflows to zero": {
      body: shape(["4294967296", "4294967296"].map(Number).concat(0)),
      status: 400,
      text: "invalid shape for input 'IN': shape [4294967296,4294967296,0] causes total element count to",
    },
    empty: {
      body: shape([]),
      status: 400,
      text: "unexpected shape for input 'IN' for model 'fp32'. Expected [-1], got [].",
    },
  });
});
