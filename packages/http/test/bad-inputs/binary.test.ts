import { describe, expect, it } from "vitest";
import { send } from "../support/send.js";
import { type BadInput, expectAnswers, useServer } from "./bad-inputs.js";

const server = useServer();

/** A request whose only input follows the JSON; the stated size is that of the bytes unless given. */
function binary(
  datatype: string,
  shape: readonly number[],
  bytes: Uint8Array,
  size: unknown = bytes.length,
): Pick<BadInput, "body" | "headers" | "model"> {
  const parameters = { binary_data_size: size };
  const json = JSON.stringify({
    parameters: { binary_data_output: true },
    inputs: [{ name: "IN", datatype, shape, parameters }],
  });
  return {
    model: datatype.toLowerCase(),
    headers: { "inference-header-content-length": json.length },
    body: Buffer.concat([Buffer.from(json), bytes]),
  };
}

const zeros = (length: number) => new Uint8Array(length);
const prefixed = (length: number, text: string) => {
  const bytes = Buffer.alloc(4 + text.length, text);
  bytes.writeUInt32LE(length, 0);
  bytes.write(text, 4);
  return bytes;
};

describe("wrong binary sizes", () => {
  expectAnswers(server, {
    "-1": {
      ...binary("FP32", [1], zeros(4), -1),
      status: 500,
      text: "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as",
    },
    "a string": {
      ...binary("FP32", [1], zeros(4), "4"),
      status: 500,
      text: "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as",
    },
    "a fraction": {
      ...binary("FP32", [1], zeros(4), 4.5),
      status: 500,
      text: "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as",
    },
    "more than the body has": {
      ...binary("FP32", [1], zeros(4), 5),
      status: 400,
      text: "unexpected size for input 'IN', expecting 1 additional bytes for model 'fp32'",
    },
    "2^64": {
      ...binary("FP32", [1], zeros(4), 2 ** 64),
      status: 500,
      text: "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as",
    },
    "less than the body has": {
      ...binary("FP32", [1], zeros(8), 4),
      status: 400,
      text: "unexpected additional input data for model 'fp32'",
    },
    "a size that differs from the shape": {
      ...binary("FP32", [2], zeros(4)),
      status: 400,
      text: "input byte size mismatch for input 'IN' for model 'fp32'. Expected 8, got 4",
    },
    "not a multiple of the element size": {
      ...binary("FP32", [1], zeros(5)),
      status: 400,
      text: "input byte size mismatch for input 'IN' for model 'fp32'. Expected 4, got 5",
    },
    "zero for a tensor with elements": {
      ...binary("FP32", [1], zeros(0)),
      status: 400,
      text: "input byte size mismatch for input 'IN' for model 'fp32'. Expected 4, got 0",
    },
    "a shape of 2^40": {
      ...binary("FP32", [2 ** 40], zeros(4)),
      status: 400,
      text: "input byte size mismatch for input 'IN' for model 'fp32'. Expected 4398046511104, got 4",
    },
    "no header length": {
      ...binary("FP32", [1], zeros(4)),
      headers: {},
      status: 400,
      text: "unexpected size for input 'IN', expecting 4 additional bytes for model 'fp32'",
    },
  });
});

describe("broken binary strings", () => {
  expectAnswers(server, {
    "a length past the end": {
      ...binary("BYTES", [1], prefixed(9, "abc")),
      status: 400,
      text: "incomplete string data for inference input 'IN', expecting string of length 9 but only 3 bytes",
    },
    "a length of 0xFFFFFFFF": {
      ...binary("BYTES", [1], prefixed(0xffffffff, "abc")),
      status: 400,
      text: "incomplete string data for inference input 'IN', expecting string of length 4294967295 but only",
    },
    "bytes left over": {
      ...binary("BYTES", [1], prefixed(2, "abc")),
      status: 400,
      text: "incomplete string length indicator for inference input 'IN' for model 'bytes', expecting 4",
    },
    "half a length": {
      ...binary("BYTES", [1], zeros(2)),
      status: 400,
      text: "incomplete string length indicator for inference input 'IN' for model 'bytes', expecting 4",
    },
    "more elements than the shape": {
      ...binary("BYTES", [1], zeros(8)),
      status: 400,
      text: "unexpected number of string elements 2 for inference input 'IN' for model 'bytes', expecting 1",
    },
    "fewer elements than the shape": {
      ...binary("BYTES", [3], zeros(8)),
      status: 400,
      text: "expected 3 string elements for inference input 'IN' for model 'bytes', got 2",
    },
    "2^31 elements": {
      ...binary("BYTES", [2 ** 31], zeros(8)),
      status: 400,
      text: "expected 2147483648 string elements for inference input 'IN' for model 'bytes', got 2",
    },
  });
});

describe("wrong header lengths", () => {
  const good = binary("FP32", [1], zeros(4));
  const length = (good.headers as Record<string, number>)["inference-header-content-length"]!;
  const withLength = (header: string | readonly string[]): Omit<BadInput, "status"> => ({
    ...good,
    headers: { "inference-header-content-length": header as string[] },
  });
  expectAnswers(server, {
    "-1": {
      ...withLength("-1"),
      status: 400,
      text: "inference header size should be in range (0, 137), got: -1",
    },
    "1e3": {
      ...withLength("1e3"),
      status: 500,
      text: "failed to parse the request JSON buffer: Missing a name for object member. at 1",
    },
    "0x10": {
      ...withLength("0x10"),
      status: 400,
      text: "input byte size mismatch for input 'raw_input' for model 'fp32'. Expected 136, got 137",
    },
    "1.5": {
      ...withLength("1.5"),
      status: 500,
      text: "failed to parse the request JSON buffer: Missing a name for object member. at 1",
    },
    "9007199254740993": {
      ...withLength("9007199254740993"),
      status: 400,
      text: "inference header size should be in range (0, 137), got: 9007199254740993",
    },
    "twenty nines": {
      ...withLength("9".repeat(20)),
      status: 400,
      text: "inference header size should be in range (0, 137), got: 99999999999999999999",
    },
    "a length beyond the body": {
      ...withLength(String(length + 5)),
      status: 400,
      text: "inference header size should be in range (0, 137), got: 138",
    },
    "a length inside the JSON": {
      ...withLength(String(length - 1)),
      status: 500,
      text: "failed to parse the request JSON buffer: Missing a comma or '}' after an object member. at 132",
    },
    "a length inside a character": {
      ...withLength("8"),
      body: Buffer.from('{"id":"é","inputs":[]}'),
      status: 500,
      text: "failed to parse the request JSON buffer: Missing a closing quotation mark in string. at 8",
    },
    "two lengths, of which the first counts": {
      ...withLength(["3", String(length)]),
      status: 500,
      text: "failed to parse the request JSON buffer: Missing a closing quotation mark in string. at 3",
    },
    "not a number": {
      ...withLength("abc"),
      status: 400,
      text: "input byte size mismatch for input 'raw_input' for model 'fp32'. Expected 136, got 137",
    },
    "a number after a space": { ...withLength(` ${length}`), status: 200 },
  });
});

describe("binary tensors with unusual bytes", () => {
  const bitsOf = async (datatype: string, bytes: Uint8Array, elementSize: number) => {
    const { body, headers, model } = binary(datatype, [bytes.length / elementSize], bytes);
    const answer = await send(server.port, {
      path: `/v2/models/${model}/infer`,
      headers,
      body: body as Buffer,
    });
    expect(answer.status).toBe(200);
    return answer.body.subarray(Number(answer.headers["inference-header-content-length"]));
  };

  it.each([
    ["FP32 NaNs with a payload", "FP32", Uint8Array.of(1, 2, 0xa0, 0x7f, 1, 0, 0x80, 0xff), 4],
    ["FP64 NaNs with a payload", "FP64", Uint8Array.of(9, 8, 7, 6, 5, 4, 0xf1, 0x7f), 8],
    ["FP16", "FP16", Uint8Array.of(1, 0x7c, 0xff, 0xff), 2],
    ["BF16", "BF16", Uint8Array.of(0x81, 0x7f), 2],
    ["BOOL of 2 to 255", "BOOL", Uint8Array.of(0, 1, 2, 128, 255), 1],
    ["64-bit integers", "UINT64", Uint8Array.of(255, 255, 255, 255, 255, 255, 255, 255), 8],
  ])("keeps the bits of %s", async (_what, datatype, bytes, size) => {
    expect([...(await bitsOf(datatype, bytes, size))]).toEqual([...bytes]);
  });

  it("keeps the bits of 8-byte types behind JSON of any length", async () => {
    for (let pad = 0; pad < 8; pad++) {
      const json = JSON.stringify({
        id: "x".repeat(pad),
        inputs: [{ name: "IN", datatype: "INT64", shape: [2], parameters: { binary_data_size: 16 } }],
      });
      const values = BigInt64Array.of(1n, -2n);
      const answer = await send(server.port, {
        path: "/v2/models/int64/infer",
        headers: { "inference-header-content-length": json.length },
        body: Buffer.concat([Buffer.from(json), new Uint8Array(values.buffer)]),
      });
      expect(answer.text).toContain('"data":[1,-2]');
    }
  });
});
