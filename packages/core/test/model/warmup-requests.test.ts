import { type ModelWarmup, TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { warmupRequests } from "../../src/model/live-instances.js";
import { modelConfig } from "../support/model-config.js";

const config = modelConfig();
const noFile = () => {
  throw new TritonError("INTERNAL", "no such file");
};

function requestsOf(
  input: Partial<ModelWarmup["inputs"][string]>,
  { batchSize = 1, readFile = noFile as (file: string) => Uint8Array } = {},
) {
  const sample = {
    name: "w",
    count: 0,
    batchSize,
    inputs: { x: { dataType: "TYPE_INT32", dims: [2], ...input } },
  };
  return warmupRequests(config, sample, readFile, { receive() {} });
}

function refusal(...given: Parameters<typeof requestsOf>): string {
  try {
    requestsOf(...given);
  } catch (error) {
    const { code, message } = TritonError.from(error);
    return `${code} ${message}`;
  }
  return "nothing was thrown";
}

describe("a warm-up sample", () => {
  it("has one request of one row for each row of its batch", () => {
    const requests = requestsOf({ zeroData: true }, { batchSize: 3 });
    expect(requests.map(({ inputs }) => inputs.get("x")!.shape)).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ]);
  });

  it("is left out without validation when its batch size is 0", () => {
    expect(requestsOf({ dims: [-1] }, { batchSize: 0 })).toEqual([]);
  });

  it("reads the first bytes of a file", () => {
    const [request] = requestsOf({ inputDataFile: "f" }, { readFile: () => new Uint8Array(99).fill(1) });
    expect([...request!.inputs.get("x")!.elements]).toEqual([0x01010101, 0x01010101]);
  });

  it.each([
    [{}, "[request id: <id_unknown>] warmup setting expects input 'x' to have input_data_type set"],
    [
      { dims: [-1], zeroData: true },
      "warmup setting expects all variable-size dimensions are specified for input 'x'",
    ],
    [
      { dataType: "TYPE_INVALID", zeroData: true },
      "warmup setting expects all variable-size dimensions are specified for input 'x', which has data type 'TYPE_INVALID'",
    ],
    [{ dims: [-2], zeroData: true }, "tensor 'x' contains an invalid dimension [-2]"],
  ])("is rejected with %j", (input, text) => {
    expect(refusal(input)).toBe(`INVALID_ARG ${text}`);
  });

  it("is rejected when its file is too short or cannot be read", () => {
    expect(refusal({ inputDataFile: "f" }, { readFile: () => new Uint8Array(7) })).toBe(
      "INVALID_ARG [request id: <id_unknown>] warmup setting expects 8 bytes, but the data provided from fonly has 7 bytes",
    );
    expect(refusal({ inputDataFile: "f" })).toBe("INTERNAL no such file");
  });
});
