import { describe, expect, it } from "vitest";
import type { SequenceOptions } from "../../../src/config/sequence-options.js";
import { ControlInputs, type ControlValues } from "../../../src/scheduler/slot-batchers.js";
import { modelConfig } from "../../support/model-config.js";

function controlsOf(
  controls: SequenceOptions["controls"],
  values: Partial<ControlValues>,
  maxBatchSize = 4,
): Record<string, unknown> {
  const config = modelConfig({ options: { sequence: { controls }, batching: maxBatchSize > 0 } });
  const given = { correlationId: 7n, sequenceStart: false, sequenceEnd: false, ready: true, ...values };
  const inputs = new ControlInputs(config).addTo(new Map(), given);
  return Object.fromEntries(
    [...inputs].map(([name, { datatype, shape, elements }]) => [name, [datatype, shape, [...elements]]]),
  );
}

describe("control tensors", () => {
  const flags = {
    start: "S",
    end: { name: "E", dtype: "FP32" },
    ready: { name: "R", dtype: "BOOL" },
  } as const;

  it("mark the place of a request in its sequence", () => {
    expect(controlsOf(flags, { sequenceStart: true })).toEqual({
      S: ["INT32", [1, 1], [1]],
      E: ["FP32", [1, 1], [0]],
      R: ["BOOL", [1, 1], [1]],
    });
    expect(controlsOf(flags, { sequenceEnd: true })).toMatchObject({
      S: ["INT32", [1, 1], [0]],
      E: ["FP32", [1, 1], [1]],
    });
  });

  it("have one dimension when the model has no batch axis", () => {
    expect(controlsOf({ start: "S" }, {}, 0)).toEqual({ S: ["INT32", [1], [0]] });
  });

  it("are false, zero and empty for a null request", () => {
    const none = { ready: false, sequenceStart: true, sequenceEnd: true };
    expect(controlsOf({ ...flags, correlationId: { name: "C" } }, none)).toEqual({
      S: ["INT32", [1, 1], [0]],
      E: ["FP32", [1, 1], [0]],
      R: ["BOOL", [1, 1], [0]],
      C: ["UINT64", [1, 1], [0n]],
    });
  });

  it.each([
    ["UINT64", 2n ** 63n, 2n ** 63n],
    ["INT64", 2n ** 64n - 1n, -1n],
    ["UINT32", 2n ** 32n + 5n, 5],
    ["INT32", 3_000_000_000n, -1_294_967_296],
  ] as const)("carry an integer id as %s", (dtype, id, element) => {
    const { C } = controlsOf({ correlationId: { name: "C", dtype } }, { correlationId: id });
    expect(C).toEqual([dtype, [1, 1], [element]]);
  });

  it("carry a text id as UTF-8", () => {
    const { C } = controlsOf({ correlationId: { name: "C", dtype: "BYTES" } }, { correlationId: "né" });
    expect(C).toEqual(["BYTES", [1, 1], [new TextEncoder().encode("né")]]);
  });
});
