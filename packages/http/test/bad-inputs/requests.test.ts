import { describe } from "vitest";
import { expectAnswers, input, useServer } from "./bad-inputs.js";

const server = useServer();

const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

const withInput = (members: string) => `{"inputs":[{"name":"IN","datatype":"FP32","shape":[1],${members}}]}`;

describe("invalid JSON", () => {
  expectAnswers(server, {
    "200": { "no body": "" },
    "500 failed to parse the request JSON buffer: The document is empty. at 0": { "a body of nulls": "\0\0" },
    "500 failed to parse the request JSON buffer: Missing a comma or ']' after an array element. at 35": {
      "half a document": '{"inputs":[{"name":"IN","data":[1,2',
    },
    "500 Unable to parse 'inputs': attempt to access non-existing object member 'inputs'": {
      "arrays 100 000 deep": nested(100_000),
      "objects 100 000 deep": `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`,
    },
    "400 Unable to parse 'data': JSON nesting depth exceeds maximum allowed limit (100)": {
      "data 100 000 deep": withInput(`"data":${nested(100_000)}`),
      "data 101 deep": withInput(`"data":${"[".repeat(101)}1${"]".repeat(101)}`),
    },
    "500 failed to parse the request JSON buffer: Number too big to be stored in double. at 62": {
      "1e999": withInput('"data":[1e999]'),
    },
  });
});

describe("JSON of the wrong structure", () => {
  expectAnswers(server, {
    "500 Unable to parse 'inputs': attempt to access non-existing object member 'inputs'": {
      null: "null",
      "a number": "5",
      "an array": "[]",
      "an empty object": "{}",
    },
    "500 Unable to parse 'inputs': attempt to access JSON non-array as array": {
      "inputs that are null": '{"inputs":null}',
      "inputs that are an object": '{"inputs":{}}',
    },
    "400 Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters',": {
      "inputs that are numbers": '{"inputs":[1,2]}',
    },
    "400 expected 1 inputs but got 0 inputs for model 'fp32'. Got input(s) [], but missing required": {
      "no inputs": '{"inputs":[]}',
    },
    "500 Unable to parse 'name': attempt to access non-existing object member 'name'": {
      "an input without a name": '{"inputs":[{"datatype":"FP32","shape":[1],"data":[1]}]}',
      "an output without a name": input("FP32", [1], [1]).replace(/}$/, ',"outputs":[{}]}'),
    },
    "500 Unable to parse 'name': attempt to access JSON non-string as string": {
      "a name that is a number": '{"inputs":[{"name":1,"datatype":"FP32","shape":[1],"data":[1]}]}',
    },
    "500 Unable to parse 'id': attempt to access JSON non-string as string": {
      "an id that is a number": '{"id":1,"inputs":[]}',
    },
    "500 Unable to parse 'outputs': attempt to access JSON non-array as array": {
      "outputs that are a string": input("FP32", [1], [1]).replace(/}$/, ',"outputs":"OUT"}'),
    },
  });
});

describe("names of JavaScript object properties", () => {
  expectAnswers(server, {
    "400 unexpected inference input '__proto__' for model 'fp32'": {
      "__proto__ as input": input("FP32", [1], [1]).replace("IN", "__proto__"),
    },
    "400 unexpected inference input 'constructor' for model 'fp32'": {
      "constructor as input": input("FP32", [1], [1]).replace("IN", "constructor"),
    },
    "400 unexpected inference output '__proto__' for model 'fp32'": {
      "__proto__ as output": input("FP32", [1], [1]).replace(/}$/, ',"outputs":[{"name":"__proto__"}]}'),
    },
    "400 parameter '__proto__' has invalid type. It should be either 'int', 'bool', or 'string'.": {
      "__proto__ as parameter": input("FP32", [1], [1]).replace(/}$/, ',"parameters":{"__proto__":{"a":1}}}'),
    },
    "500 Unable to parse 'inputs': attempt to access non-existing object member 'inputs'": {
      "__proto__ as member": `{"__proto__":{"inputs":[]}}`,
    },
    "404 Request for unknown model: '__proto__' is not found": {
      "__proto__ as model": { path: "/v2/models/__proto__/infer", body: "{}" },
    },
    "404 Request for unknown model: 'constructor' is not found": {
      "constructor as model": { path: "/v2/models/constructor/infer", body: "{}" },
    },
    "400 invalid datatype for input IN": { "hasOwnProperty as data type": input("hasOwnProperty", [1], [1]) },
  });
});

describe("unusual JSON that is accepted as Triton accepts it", () => {
  expectAnswers(server, {
    '200 "data":[1.0]': {
      "a byte order mark": `\ufeff${input("FP32", [1], [1])}`,
      "the same member twice": withInput('"data":[1],"data":[2]'),
      "a lone low surrogate": input("FP32", [1], [1]).replace("{", '{"id":"\\udc00",'),
    },
    '200 "data":[0.0]': { "a negative zero": withInput('"data":[-0]') },
    '200 "data":[NaN,Infinity,-Infinity]': {
      "NaN and Infinity":
        '{"inputs":[{"name":"IN","datatype":"FP32","shape":[3],"data":[NaN,Infinity,-Infinity]}]}',
    },
    "200": {
      "an id of 1 MB with CR LF": input("FP32", [1], [1]).replace(
        "{",
        `{"id":"${"\\r\\n".repeat(250_000)}",`,
      ),
    },
  });
});

const one = { name: "IN", datatype: "FP32", shape: [1], data: [1] };

describe("wrong inputs and outputs", () => {
  expectAnswers(server, {
    "400 input 'IN' already exists in request": { "the same input twice": { body: { inputs: [one, one] } } },
    "400 expected 1 inputs but got 2 inputs for model 'fp32'. Got input(s) ['IN','EXTRA'], but missing": {
      "a surplus input": { body: { inputs: [one, { ...one, name: "EXTRA" }] } },
    },
    "400 unexpected inference input 'OTHER' for model 'fp32'": {
      "another input": { body: { inputs: [{ ...one, name: "OTHER" }] } },
    },
    "400 expected 1 inputs but got 0 inputs for model 'fp32'. Got input(s) [], but missing required": {
      "no input": { body: { inputs: [] } },
    },
    "400 unexpected inference output 'OTHER' for model 'fp32'": {
      "another output": { body: { inputs: [one], outputs: [{ name: "OTHER" }] } },
    },
    '200 "data":[1.0]': {
      "the same output twice": { body: { inputs: [one], outputs: [{ name: "OUT" }, { name: "OUT" }] } },
    },
    "400 request has 4097 inputs, which exceeds the maximum allowed number of 4096": {
      "4097 inputs": {
        body: { inputs: Array.from({ length: 4097 }, (_, i) => ({ ...one, name: `I${i}` })) },
      },
    },
    "400 request has 10000 outputs, which exceeds the maximum allowed number of 4096": {
      "10 000 outputs": {
        body: { inputs: [one], outputs: Array.from({ length: 10_000 }, (_, i) => ({ name: `O${i}` })) },
      },
    },
    "400 Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters',": {
      "no source": { body: { inputs: [{ ...one, data: undefined }] } },
      "two sources": { body: { inputs: [{ ...one, parameters: { binary_data_size: 4 } }] } },
    },
    "404 Unable to find shared memory region: 'r'": {
      "shared memory": {
        body: {
          inputs: [
            {
              ...one,
              data: undefined,
              parameters: { shared_memory_region: "r", shared_memory_byte_size: 4 },
            },
          ],
        },
      },
      "an output in shared memory": {
        body: { inputs: [one], outputs: [{ name: "OUT", parameters: { shared_memory_region: "r" } }] },
      },
    },
    "500 Unable to set 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer": {
      "classification of a string": {
        body: { inputs: [one], outputs: [{ name: "OUT", parameters: { classification: "x" } }] },
      },
    },
    "400 class result not available for output due to unsupported type 'BYTES'": {
      "classification of strings": {
        model: "bytes",
        body: {
          inputs: [{ ...one, datatype: "BYTES", data: ["x"] }],
          outputs: [{ name: "OUT", parameters: { classification: 1 } }],
        },
      },
    },
    '200 "data":[]': {
      "classification of nothing": {
        body: {
          inputs: [{ ...one, shape: [0], data: [] }],
          outputs: [{ name: "OUT", parameters: { classification: 1 } }],
        },
      },
    },
  });
});

describe("wrong parameters", () => {
  const parameters = (value: unknown) => ({ body: { inputs: [one], parameters: value } });
  expectAnswers(server, {
    "500 failed to get request params.: attempt to get members for non-object": {
      "parameters that are not an object": parameters([1]),
    },
    "400 parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.": {
      "an object inside": parameters({ a: { b: { c: 1 } } }),
      "an array inside": parameters({ a: [1] }),
      "null inside": parameters({ a: null }),
    },
    "400 parameter keys starting with 'triton_' are reserved for Triton usage and should not be": {
      "a reserved name": parameters({ triton_x: 1 }),
    },
    '200 "data":[1.0]': {
      "priority 0": parameters({ priority: 0 }),
      "sequence_id 0": parameters({ sequence_id: 0 }),
      'sequence_id ""': parameters({ sequence_id: "" }),
    },
    "500 Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer": {
      "priority -1": parameters({ priority: -1 }),
      'priority "1"': parameters({ priority: "1" }),
    },
    "500 Unable to parse 'timeout': attempt to access JSON non-unsigned-integer as unsigned-integer": {
      "timeout NaN": {
        ...parameters({}),
        body: JSON.stringify(parameters({ timeout: "N" }).body).replace('"N"', "NaN"),
      },
      "timeout 1e20": parameters({ timeout: 1e20 }),
      "timeout that is a fraction": parameters({ timeout: 1.5 }),
    },
    "500 Unable to parse 'sequence_id': attempt to access JSON non-string as string": {
      "sequence_id 1e30": parameters({ sequence_id: 1e30 }),
    },
    "501 string correlation ID cannot be longer than 128 characters": {
      "sequence_id of 129 letters": parameters({ sequence_id: "x".repeat(129) }),
    },
    "500 Unable to parse 'sequence_start': attempt to access JSON non-boolean as boolean": {
      "sequence_start 1": parameters({ sequence_start: 1 }),
    },
    "500 Unable to parse 'binary_data_output': attempt to access JSON non-boolean as boolean": {
      'binary_data_output "true"': parameters({ binary_data_output: "true" }),
    },
  });
});

const get = (path: string) => ({ method: "GET", path });

describe("wrong paths", () => {
  const notFound = (model: string) => `404 Request for unknown model: '${model}' is not found`;
  const model = (name: string, path = `/v2/models/${name}`) => ({ [notFound(name)]: { [path]: get(path) } });
  const version = "400 failed to get model version from specified version string";
  expectAnswers(server, {
    ...model("%2e%2e%2fetc"),
    ...model("a%00b"),
    ...model("%ff"),
    ...model("%"),
    ...model("f%7032"),
    ...model("__proto__"),
    ...model("constructor", "/v2/models/constructor/config"),
    "404 Not Found": Object.fromEntries(
      [
        "/v2/models/../../etc/passwd",
        "/v2/models//ready",
        "/v2/models/fp32/",
        "/v2/models/fp32/nothing",
        "//v2",
        "/v2/",
        "/V2",
        "/v2/models/fp32/versions/-1",
        "/v2/models/fp32/versions/1e1",
        "/v2/models/fp32/versions/latest",
      ].map((path) => [path, get(path)]),
    ),
    "404 Request for unknown model: 'fp32' version 0 is not found": {
      "version 0": get("/v2/models/fp32/versions/0"),
    },
    "404 Request for unknown model: 'fp32' version 9007199254740993 is not found": {
      "a version above 2^53": get("/v2/models/fp32/versions/9007199254740993"),
    },
    [`${version} '18446744073709551615' (details:`]: {
      "a version of 2^64 - 1": get("/v2/models/fp32/versions/18446744073709551615"),
    },
    [`${version} '99999999999999999999999999'`]: {
      "a version above 2^64": get("/v2/models/fp32/versions/99999999999999999999999999"),
    },
    "400 requested model 'toString' is not available": { toString: get("/v2/models/toString/stats") },
    "404 Request for unknown model: 'x": {
      "a model name of 10 000 letters": get(`/v2/models/${"x".repeat(10_000)}`),
    },
    "431 Request Header Fields Too Large": {
      "a path of 20 000 letters": get(`/v2/models/${"x".repeat(20_000)}`),
      "headers of 20 000 letters": { ...get("/v2"), headers: { "x-long": "x".repeat(20_000) } },
    },
    "200": {
      // Newer versions of Node reject all other methods; older versions let some through.
      "five hundred headers": {
        ...get("/v2"),
        headers: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`x-${i}`, "1"])),
      },
    },
  });
});

const routes: readonly (readonly [path: string, methods: readonly string[]])[] = [
  ["/v2", ["GET"]],
  ["/v2/health/live", ["GET"]],
  ["/v2/health/ready", ["GET"]],
  ["/v2/models/stats", ["GET"]],
  ["/v2/models/fp32", ["GET"]],
  ["/v2/models/fp32/ready", ["GET"]],
  ["/v2/models/fp32/config", ["GET"]],
  ["/v2/models/fp32/stats", ["GET"]],
  ["/v2/models/fp32/versions/1/infer", ["POST"]],
  ["/v2/models/fp32/infer", ["POST"]],
  ["/v2/models/fp32/generate", ["POST"]],
  ["/v2/models/fp32/generate_stream", ["POST"]],
  ["/v2/models/fp32/trace/setting", ["GET", "POST"]],
  ["/v2/trace/setting", ["GET", "POST"]],
  ["/v2/logging", ["GET", "POST"]],
  ["/v2/repository/index", ["POST"]],
  ["/v2/repository/models/fp32/load", ["POST"]],
  ["/v2/repository/models/fp32/unload", ["POST"]],
  ["/v2/systemsharedmemory/status", ["GET"]],
  ["/v2/cudasharedmemory/region/r/register", ["POST"]],
  ["/v2/systemsharedmemory/unregister", ["POST"]],
];

describe("wrong methods", () => {
  const all = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"];
  const wrong = routes.flatMap(([path, allowed], i) =>
    (i === 0 ? all : all.slice(0, 3))
      .filter((method) => !allowed.includes(method))
      .map((method) => [`${method} ${path}`, { method, path }]),
  );
  expectAnswers(server, {
    '405 {"error":"Method Not Allowed"}': Object.fromEntries(wrong),
    "405": { HEAD: { method: "HEAD", path: "/v2" } },
  });
});
