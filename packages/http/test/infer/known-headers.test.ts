import type { ReadyModel } from "@tritonjs/core/frontend";
import { SharedMemory } from "@tritonjs/core/internal";
import { describe, expect, it } from "vitest";
import { decodeInferRequest, headerKey, knownHeader } from "../../src/infer/infer-request.js";
import { identityConfig } from "../support/identity-service.js";

const noRegions = new SharedMemory(false);
const newModel = (): ReadyModel => ({
  name: "m",
  version: 1,
  config: identityConfig("m", "INT32"),
  labels: new Map(),
});

const header = (more: object = {}, shape = [2]) =>
  JSON.stringify({
    inputs: [{ name: "IN", datatype: "INT32", shape, parameters: { binary_data_size: 4 * (shape[0] ?? 0) } }],
    ...more,
  });

function decode(model: ReadyModel, json: string, ...elements: number[]) {
  const body = Buffer.concat([Buffer.from(json), Buffer.from(Int32Array.from(elements).buffer)]);
  return decodeInferRequest(model, body, Buffer.byteLength(json), 1 << 20, noRegions);
}

const isKnown = (model: ReadyModel, json: string): boolean =>
  knownHeader(model, headerKey(Buffer.from(json), json.length) ?? "") !== undefined;

describe("a repeated inference header", () => {
  it("gives the same request with other tensors", () => {
    const model = newModel();
    const json = header({
      parameters: { priority: 2, binary_data_output: true },
      outputs: [{ name: "OUT", parameters: { classification: 3 } }],
    });
    const first = decode(model, json, 1, 2);
    expect(isKnown(model, json)).toBe(true);
    const again = decode(model, json, 3, 4);
    expect(again.outputs).toEqual(first.outputs);
    expect({ ...again, inputs: 0, parameters: {} }).toEqual({
      ...first,
      inputs: 0,
      parameters: {},
    });
    expect(again.inputs.get("IN")?.shape).toEqual([2]);
    expect(again.inputs.get("IN")?.shape).not.toBe(first.inputs.get("IN")?.shape);
    expect([...(again.inputs.get("IN")!.elements as Int32Array)]).toEqual([3, 4]);
    expect([...(first.inputs.get("IN")!.elements as Int32Array)]).toEqual([1, 2]);
  });

  it.each([
    ["few", [3], "unexpected size for input 'IN', expecting 4 additional bytes for model 'm'"],
    ["many", [3, 4, 5], "unexpected additional input data for model 'm'"],
  ])("is rejected for too %s bytes with the same text", (_, elements, message) => {
    const [fresh, model] = [newModel(), newModel()];
    decode(model, header(), 1, 2);
    expect(() => decode(fresh, header(), ...elements)).toThrow(message);
    expect(() => decode(model, header(), ...elements)).toThrow(message);
  });

  it("is remembered for one loaded model only", () => {
    const model = newModel();
    decode(model, header(), 1, 2);
    expect(isKnown(newModel(), header())).toBe(false);
  });
});

describe("an inference header is not remembered", () => {
  it.each([
    ["an id", header({ id: "7" })],
    ["parameters for the model", header({ parameters: { temperature: 1 } })],
    ["more bytes than a header has", header({ unused: "x".repeat(1024) })],
  ])("with %s", (_, json) => {
    const model = newModel();
    decode(model, json, 1, 2);
    expect(isKnown(model, json)).toBe(false);
    expect(decode(model, json, 3, 4).inputs.get("IN")?.byteLength).toBe(8);
  });

  it("when it has a fault", () => {
    const model = newModel();
    expect(() => decode(model, header(), 1)).toThrow("unexpected size");
    expect(isKnown(model, header())).toBe(false);
  });

  it("forever: when the memory is full, new headers replace all older ones", () => {
    const model = newModel();
    const headers = Array.from({ length: 65 }, (_, i) => header({ note: i }));
    for (const json of headers) decode(model, json, 1, 2);
    expect(headers.filter((json) => isKnown(model, json))).toEqual([headers[64]]);
  });
});
