import { TritonError } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { decodeInferResponse } from "../../../src/http/index.js";

const output = { name: "y", datatype: "FP32", shape: [2] };

function decode(json: unknown, binary = 0, length?: string) {
  const text = new TextEncoder().encode(typeof json === "string" ? json : JSON.stringify(json));
  const body = new Uint8Array(text.length + binary);
  body.set(text);
  return decodeInferResponse(
    body,
    new Headers({ "inference-header-content-length": length ?? `${text.length}` }),
  );
}

function binary(size: unknown, more: object = {}) {
  return { outputs: [{ ...output, parameters: { binary_data_size: size }, ...more }] };
}

describe("the answer to an inference", () => {
  it.each<[string, () => unknown, string]>([
    ["is not JSON", () => decode("<html>no</html>"), "not JSON: <html>no</html>"],
    ["is cut short", () => decode('{"outputs":[{"name"'), "not JSON"],
    ["has no outputs", () => decode({}), "no outputs: {}"],
    ["is an array", () => decode([]), "no outputs"],
    [
      "has a JSON length beyond the body",
      () => decode(binary(8), 0, "4000"),
      "the size of the body, got 4000",
    ],
    ["has an invalid JSON length", () => decode(binary(8), 8, "-1"), "the size of the body, got -1"],
    ["has an output without a name", () => decode({ outputs: [{}] }), "an output has no name"],
    [
      "has an unknown data type",
      () => decode({ outputs: [{ ...output, datatype: "X" }] }),
      "a known datatype, got 'X'",
    ],
    ["has no shape", () => decode({ outputs: [{ ...output, shape: [-1] }] }), "has no shape"],
    [
      "has a huge shape",
      () => decode({ outputs: [{ ...output, shape: [2 ** 50, 2 ** 50], data: [] }] }),
      "too large",
    ],
    ["has a bad size", () => decode(binary(-1)), "as binary_data_size, got -1"],
    ["ends too early", () => decode(binary(8), 7), "output 'y' ends after the end of the body"],
    ["has bytes left over", () => decode(binary(8), 9), "1 bytes do not belong to an output"],
    ["has the wrong size", () => decode(binary(4), 4), "elements, got 1"],
    ["has half an element", () => decode(binary(7), 7), "expected a whole number of FP32 elements"],
    [
      "has half a string",
      () => decode(binary(6, { datatype: "BYTES" }), 6),
      "ends in the middle of an element",
    ],
    ["has too few elements", () => decode({ outputs: [{ ...output, data: [1] }] }), "elements, got 1"],
    [
      "has elements of another type",
      () => decode({ outputs: [{ ...output, data: ["a", null] }] }),
      "expected a number",
    ],
    [
      "has no array as data",
      () => decode({ outputs: [{ ...output, data: "x" }] }),
      "expected an array as data",
    ],
  ])("is an error of the server when it %s", (_case, read, message) => {
    let error: unknown;
    try {
      read();
    } catch (thrown) {
      error = thrown;
    }
    expect(TritonError.is(error) && error.code).toBe("INTERNAL");
    expect((error as Error).message).toContain("cannot read the server's answer as an inference response");
    expect((error as Error).message).toContain(message);
    expect((error as Error).message.length).toBeLessThan(400);
  });

  it("may nest its data in any way and print doubles as integers", () => {
    const text =
      '{"outputs":[{"name":"y","datatype":"FP64","shape":[2,2],"data":[[1,12345678901234567890],[NaN,-Infinity]]}]}';
    const values = decode(text).elements("y", "FP64");
    expect([...values]).toEqual([1, Number("12345678901234567890"), Number.NaN, Number.NEGATIVE_INFINITY]);
  });

  it("may have outputs in shared memory, which the result omits", () => {
    const result = decode({ outputs: [output] });
    expect([...result.tensors.keys()]).toEqual([]);
    expect(result.response.json.outputs).toEqual([output]);
    expect(() => result.array("y")).toThrow("the answer has no output 'y': got none");
  });

  it("rejects reading an output as another data type", () => {
    const result = decode({ outputs: [{ ...output, data: [1, 2] }] });
    expect(() => result.array("y", "INT8")).toThrow("output 'y': expected INT8, got FP32");
    expect(result.array("y", "FP32").get(1)).toBe(2);
  });

  it("may have an output with any name", () => {
    const result = decode('{"outputs":[{"name":"__proto__","datatype":"INT8","shape":[1],"data":[5]}]}');
    expect(Object.keys(result.outputs)).toEqual(["__proto__"]);
    expect([...result.elements("__proto__", "INT8")]).toEqual([5]);
  });
});
