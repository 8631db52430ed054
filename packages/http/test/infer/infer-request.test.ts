import type { ReadyModel } from "@tritonjs/core/frontend";
import { SharedMemory } from "@tritonjs/core/internal";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeInferRequest,
  decodeRawRequest,
  inferenceHeaderLength,
} from "../../src/infer/infer-request.js";
import { identityConfig } from "../support/identity-service.js";

const LIMIT = 1 << 20;
const noRegions = new SharedMemory(false);

function model(...config: Parameters<typeof identityConfig>): ReadyModel {
  return { name: config[0], version: 1, config: identityConfig(...config), labels: new Map() };
}

const anyModel = model("m", "INT32");
const input = { name: "IN", datatype: "INT32", shape: [1], data: [1] };

function decode(request: unknown, binary: Uint8Array = new Uint8Array(0)) {
  const json = Buffer.from(typeof request === "string" ? request : JSON.stringify(request));
  return decodeInferRequest(anyModel, Buffer.concat([json, binary]), json.length, LIMIT, noRegions);
}

describe("decoding parameters", () => {
  it("applies protocol parameters and passes the rest to the model", () => {
    const init = decode(
      '{"id":"r","parameters":{"sequence_id":18446744073709551615,"sequence_start":true,"sequence_end":false,' +
        '"priority":2,"timeout":5,"binary_data_output":true,"__proto__":1,"s":"x","big":9007199254740993,' +
        '"d":0.5,"b":false,"huge":9223372036854775808},"inputs":[]}',
    );
    expect(init).toMatchObject({
      id: "r",
      correlationId: 18446744073709551615n,
      sequenceStart: true,
      sequenceEnd: false,
      priority: 2,
      queueTimeoutMicroseconds: 5,
    });
    expect(Object.entries(init.parameters ?? {})).toEqual([
      ["__proto__", 1],
      ["s", "x"],
      ["big", 9007199254740993n],
      ["d", 0.5],
      ["b", false],
      ["huge", 2 ** 63],
    ]);
    expect(init.outputs.others).toEqual({ binary: true, classes: 0 });
  });

  it.each([
    [{ triton_x: null }, "parameter keys starting with 'triton_' are reserved"],
    [{ k: [] }, "parameter 'k' has invalid type. It should be either 'int', 'bool', or 'string'."],
    [{ priority: -1 }, "Unable to parse 'priority': attempt to access JSON non-unsigned-integer"],
    [{ timeout: 1.5 }, "Unable to parse 'timeout': attempt to access JSON non-unsigned-integer"],
    [{ sequence_id: 1.5 }, "Unable to parse 'sequence_id': attempt to access JSON non-string as string"],
    [{ sequence_id: "x".repeat(129) }, "string correlation ID cannot be longer than 128 characters"],
    [
      { sequence_start: 1 },
      "Unable to parse 'sequence_start': attempt to access JSON non-boolean as boolean",
    ],
    [[], "failed to get request params.: attempt to get members for non-object"],
  ])("rejects %j", (parameters, fault) => {
    expect(() => decode({ parameters, inputs: [input] })).toThrow(fault);
  });
});

describe("decoding inputs", () => {
  it("reads them from the JSON and from the bytes behind it, in order", () => {
    const init = decode(
      {
        inputs: [
          { name: "a", datatype: "INT8", shape: [2], parameters: { binary_data_size: 2 } },
          { name: "b", datatype: "INT8", shape: [1], data: [9] },
          { name: "c", datatype: "INT8", shape: [1], parameters: { binary_data_size: 1 } },
        ],
      },
      Uint8Array.of(1, 2, 3),
    );
    expect([...init.inputs].map(([name, tensor]) => [name, [...(tensor.elements as Int8Array)]])).toEqual([
      ["a", [1, 2]],
      ["b", [9]],
      ["c", [3]],
    ]);
  });

  it.each([
    [{}, "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'"],
    [{ inputs: {} }, "Unable to parse 'inputs': attempt to access JSON non-array as array"],
    [{ inputs: [5] }, "But no field is set"],
    [{ inputs: [{ ...input, parameters: { binary_data_size: 4 } }] }, "But set 'data' 'binary_data_size'"],
    [
      { inputs: [{ ...input, name: 5 }] },
      "Unable to parse 'name': attempt to access JSON non-string as string",
    ],
    [{ inputs: [{ ...input, shape: [1.5] }] }, "Unable to parse 'shape'"],
    [{ inputs: [{ ...input, shape: [[1]] }] }, "Unable to parse 'shape'"],
    [{ id: "q", inputs: [input, input] }, "[request id: q] input 'IN' already exists in request"],
    [{ id: 5, inputs: [input] }, "Unable to parse 'id': attempt to access JSON non-string as string"],
    [
      { inputs: [{ ...input, data: undefined, parameters: { binary_data_size: 4 } }] },
      "unexpected size for input 'IN', expecting 4 additional bytes for model 'm'",
    ],
    [
      { inputs: [{ ...input, data: undefined, parameters: { binary_data_size: -4 } }] },
      "Unable to parse 'binary_data_size'",
    ],
  ])("rejects %j", (request, fault) => {
    expect(() => decode(request)).toThrow(fault);
  });

  it("rejects surplus bytes", () => {
    expect(() => decode({ inputs: [input] }, Uint8Array.of(1))).toThrow(
      "unexpected additional input data for model 'm'",
    );
  });
});

describe("decoding requested outputs", () => {
  it("gives each a form, and the first of duplicates counts", () => {
    const init = decode({
      parameters: { binary_data_output: true },
      inputs: [input],
      outputs: [
        { name: "a", parameters: { binary_data: true } },
        { name: "b", parameters: { classification: 3 } },
        { name: "a" },
        { name: "c", parameters: null },
      ],
    });
    expect(init.requestedOutputs).toEqual(["a", "b", "c"]);
    expect([...init.outputs.named]).toEqual([
      ["a", { binary: true, classes: 0 }],
      ["b", { binary: false, classes: 3 }],
      ["c", { binary: false, classes: 0 }],
    ]);
  });
});

describe("the inference header length", () => {
  it.each([
    [undefined, 100, 100],
    ["0", 100, 0],
    ["97xyz", 100, 97],
    ["abc", 100, 0],
    ["", 100, 0],
    [" 5", 100, 5],
    ["1e3", 100, 1],
    ["0x10", 100, 0],
  ])("%j of %d bytes is %d", (header, length, expected) => {
    expect(inferenceHeaderLength(header, length)).toBe(expected);
  });

  it.each(["-1", "101", "9007199254740993", "9".repeat(20)])("cannot be %s of 100", (header) => {
    expect(() => inferenceHeaderLength(header, 100)).toThrow(
      `inference header size should be in range (0, 100), got: ${header}`,
    );
  });
});

describe("a raw request", () => {
  it("gets its shape from its size", () => {
    const raw = (ready: ReadyModel, bytes: number) =>
      decodeRawRequest(ready, new Uint8Array(bytes), LIMIT).inputs.get("IN")?.shape;
    expect(raw(model("m", "INT32"), 12)).toEqual([3]);
    expect(raw(model("m", "INT32", [2, -1], 8), 16)).toEqual([1, 2, 2]);
    expect(raw(model("m", "BYTES", [1], 8), 5)).toEqual([1, 1]);
  });

  it("is rejected when its shape cannot be derived", () => {
    const raw = (ready: ReadyModel) => () => decodeRawRequest(ready, new Uint8Array(5), LIMIT);
    expect(raw(model("m", "INT32"))).toThrow(
      "[request id: <id_unknown>] input byte size mismatch for input 'raw_input' for model 'm'. Expected 4, got 5",
    );
    expect(raw(model("m", "INT32", [-1, -1]))).toThrow("more than one variable-sized dimension");
    expect(raw(model("m", "BYTES", [2]))).toThrow("the model must have input shape [1]");
  });
});

it("decoding any request returns a request or throws a typed error", () => {
  const odd = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom("IN", "INT32", 1, -1, 1.5, [1], { binary_data_size: 1 }),
  );
  const inputs = fc.array(
    fc.record(
      { name: odd, datatype: odd, shape: odd, data: odd, parameters: odd },
      { requiredKeys: ["name", "datatype", "shape"] },
    ),
  );
  const requests = fc.record(
    { id: odd, inputs: fc.oneof(odd, inputs), outputs: odd, parameters: odd },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(requests, fc.uint8Array(), (request, binary) => {
      try {
        decode(request, binary);
      } catch (thrown) {
        expect(thrown).toMatchObject({ name: "TritonError" });
      }
    }),
  );
});
