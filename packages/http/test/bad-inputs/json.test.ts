import { describe } from "vitest";
import { expectAnswers, input, useServer } from "./bad-inputs.js";

const server = useServer();
const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const withInput = (members: string) => `{"inputs":[{"name":"IN","datatype":"FP32","shape":[1],${members}}]}`;

describe("invalid JSON", () => {
  expectAnswers(server, {
    "no body": { body: "", status: 200 },
    "a body of nulls": {
      body: "\0\0",
      status: 500,
      text: "failed to parse the request JSON buffer: The document is empty. at 0",
    },
    "a trailing comma": {
      body: '{"inputs":[],}',
      status: 500,
      text: "failed to parse the request JSON buffer: Missing a name for object member. at 13",
    },
    "half a document": {
      body: '{"inputs":[{"name":"IN","data":[1,2',
      status: 500,
      text: "failed to parse the request JSON buffer: Missing a comma or ']' after an array element. at 35",
    },
    "two documents": {
      body: "{}{}",
      status: 500,
      text: "failed to parse the request JSON buffer: The document root must not be followed by other",
    },
    "single quotes": {
      body: "{'inputs':[]}",
      status: 500,
      text: "failed to parse the request JSON buffer: Missing a name for object member. at 1",
    },
    "a bare word": {
      body: "inputs",
      status: 500,
      text: "failed to parse the request JSON buffer: Invalid value. at 0",
    },
    "arrays 100 000 deep": {
      body: nested(100_000),
      status: 500,
      text: "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
    },
    "data 100 000 deep": {
      body: withInput(`"data":${nested(100_000)}`),
      status: 400,
      text: "Unable to parse 'data': JSON nesting depth exceeds maximum allowed limit (100)",
    },
    "data 101 deep": {
      body: withInput(`"data":${"[".repeat(101)}1${"]".repeat(101)}`),
      status: 400,
      text: "Unable to parse 'data': JSON nesting depth exceeds maximum allowed limit (100)",
    },
    "objects 100 000 deep": {
      body: `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`,
      status: 500,
      text: "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
    },
    "1e999": {
      body: withInput('"data":[1e999]'),
      status: 500,
      text: "failed to parse the request JSON buffer: Number too big to be stored in double. at 62",
    },
    "an exponent of twenty digits": {
      body: withInput('"data":[1e99999999999999999999]'),
      status: 500,
      text: "failed to parse the request JSON buffer: Number too big to be stored in double. at 62",
    },
    "a number that ends in a dot": {
      body: withInput('"data":[1.]'),
      status: 500,
      text: "failed to parse the request JSON buffer: Miss fraction part in number. at 64",
    },
    "a number that begins with zero": {
      body: withInput('"data":[01]'),
      status: 500,
      text: "failed to parse the request JSON buffer: Missing a comma or ']' after an array element. at 63",
    },
    "a hexadecimal number": {
      body: withInput('"data":[0x1]'),
      status: 500,
      text: "failed to parse the request JSON buffer: Missing a comma or ']' after an array element. at 63",
    },
    "an invalid escape": {
      body: '{"inputs":"\\x"}',
      status: 500,
      text: "failed to parse the request JSON buffer: Invalid escape character in string. at 11",
    },
    "a lone high surrogate": {
      body: '{"id":"\\ud800","inputs":[]}',
      status: 500,
      text: "failed to parse the request JSON buffer: The surrogate pair in string is invalid. at 7",
    },
    "a string with a line feed": {
      body: '{"id":"a\nb","inputs":[]}',
      status: 500,
      text: "failed to parse the request JSON buffer: Invalid escape character in string. at 8",
    },
  });
});

describe("JSON of the wrong structure", () => {
  expectAnswers(server, {
    null: {
      body: "null",
      status: 500,
      text: "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
    },
    "a number": {
      body: "5",
      status: 500,
      text: "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
    },
    "an array": {
      body: "[]",
      status: 500,
      text: "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
    },
    "an empty object": {
      body: "{}",
      status: 500,
      text: "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
    },
    "inputs that are null": {
      body: '{"inputs":null}',
      status: 500,
      text: "Unable to parse 'inputs': attempt to access JSON non-array as array",
    },
    "inputs that are an object": {
      body: '{"inputs":{}}',
      status: 500,
      text: "Unable to parse 'inputs': attempt to access JSON non-array as array",
    },
    "inputs that are numbers": {
      body: '{"inputs":[1,2]}',
      status: 400,
      text: "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters',",
    },
    "no inputs": {
      body: '{"inputs":[]}',
      status: 400,
      text: "expected 1 inputs but got 0 inputs for model 'fp32'. Got input(s) [], but missing required",
    },
    "an input without a name": {
      body: '{"inputs":[{"datatype":"FP32","shape":[1],"data":[1]}]}',
      status: 500,
      text: "Unable to parse 'name': attempt to access non-existing object member 'name'",
    },
    "a name that is a number": {
      body: '{"inputs":[{"name":1,"datatype":"FP32","shape":[1],"data":[1]}]}',
      status: 500,
      text: "Unable to parse 'name': attempt to access JSON non-string as string",
    },
    "an id that is a number": {
      body: '{"id":1,"inputs":[]}',
      status: 500,
      text: "Unable to parse 'id': attempt to access JSON non-string as string",
    },
    "outputs that are a string": {
      body: input("FP32", [1], [1]).replace(/}$/, ',"outputs":"OUT"}'),
      status: 500,
      text: "Unable to parse 'outputs': attempt to access JSON non-array as array",
    },
    "an output without a name": {
      body: input("FP32", [1], [1]).replace(/}$/, ',"outputs":[{}]}'),
      status: 500,
      text: "Unable to parse 'name': attempt to access non-existing object member 'name'",
    },
  });
});

describe("names of JavaScript object properties", () => {
  expectAnswers(server, {
    "__proto__ as input": {
      body: input("FP32", [1], [1]).replace("IN", "__proto__"),
      status: 400,
      text: "unexpected inference input '__proto__' for model 'fp32'",
    },
    "constructor as input": {
      body: input("FP32", [1], [1]).replace("IN", "constructor"),
      status: 400,
      text: "unexpected inference input 'constructor' for model 'fp32'",
    },
    "__proto__ as output": {
      body: input("FP32", [1], [1]).replace(/}$/, ',"outputs":[{"name":"__proto__"}]}'),
      status: 400,
      text: "unexpected inference output '__proto__' for model 'fp32'",
    },
    "__proto__ as parameter": {
      body: input("FP32", [1], [1]).replace(/}$/, ',"parameters":{"__proto__":{"a":1}}}'),
      status: 400,
      text: "parameter '__proto__' has invalid type. It should be either 'int', 'bool', or 'string'.",
    },
    "__proto__ as member": {
      body: `{"__proto__":{"inputs":[]}}`,
      status: 500,
      text: "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
    },
    "__proto__ as model": {
      path: "/v2/models/__proto__/infer",
      body: "{}",
      status: 404,
      text: "Request for unknown model: '__proto__' is not found",
    },
    "constructor as model": {
      path: "/v2/models/constructor/infer",
      body: "{}",
      status: 404,
      text: "Request for unknown model: 'constructor' is not found",
    },
    "hasOwnProperty as data type": {
      body: input("hasOwnProperty", [1], [1]),
      status: 400,
      text: "invalid datatype for input IN",
    },
  });
});

describe("unusual JSON that is accepted as Triton accepts it", () => {
  expectAnswers(server, {
    "a byte order mark": { body: `\ufeff${input("FP32", [1], [1])}`, status: 200, text: '"data":[1.0]' },
    "a negative zero": { body: withInput('"data":[-0]'), status: 200, text: '"data":[0.0]' },
    "the same member twice": { body: withInput('"data":[1],"data":[2]'), status: 200, text: '"data":[1.0]' },
    "NaN and Infinity": {
      body: '{"inputs":[{"name":"IN","datatype":"FP32","shape":[3],"data":[NaN,Infinity,-Infinity]}]}',
      status: 200,
      text: '"data":[NaN,Infinity,-Infinity]',
    },
    "a lone low surrogate": {
      body: input("FP32", [1], [1]).replace("{", '{"id":"\\udc00",'),
      status: 200,
      text: '"data":[1.0]',
    },
    "an id of 1 MB with CR LF": {
      body: input("FP32", [1], [1]).replace("{", `{"id":"${"\\r\\n".repeat(250_000)}",`),
      status: 200,
    },
  });
});
