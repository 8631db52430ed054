import type { ModelSequenceBatching, SequenceControl } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { toConfigJson } from "../../../src/config/config-json.js";
import { validateConfig, validateOptions } from "../../../src/config/resolve-config.js";
import type { SequenceOptions } from "../../../src/config/sequence-options.js";
import { modelConfig } from "../../support/model-config.js";

const resolved = (sequence: SequenceOptions) => modelConfig({ options: { sequence } });
const problems = (given: Partial<ModelSequenceBatching>) => {
  const sequenceBatching = { ...resolved({}).sequenceBatching!, ...given };
  return validateConfig(modelConfig({ overrides: { sequenceBatching } }));
};
const control = (given: Partial<SequenceControl>): SequenceControl => ({
  kind: "CONTROL_SEQUENCE_START",
  int32FalseTrue: [],
  fp32FalseTrue: [],
  boolFalseTrue: [],
  dataType: "TYPE_INVALID",
  ...given,
});
const withControl = (given: Partial<SequenceControl>, name = "C") =>
  problems({ controlInput: [{ name, control: [control(given)] }] });

describe("sequence options", () => {
  it("replace the dynamic batcher, with Triton's defaults", () => {
    const config = resolved({});
    expect(config.dynamicBatching).toBeUndefined();
    expect(config.sequenceBatching).toEqual({
      oldest: {
        maxCandidateSequences: 0,
        preferredBatchSize: [4],
        maxQueueDelayMicroseconds: 0,
        preserveOrdering: false,
      },
      maxSequenceIdleMicroseconds: 1_000_000,
      controlInput: [],
      state: [],
      iterativeSequence: false,
    });
    expect(validateConfig(config)).toEqual([]);
  });

  it("create control tensors", () => {
    const { sequenceBatching } = resolved({
      controls: {
        start: "S",
        ready: { name: "R", dtype: "BOOL" },
        correlationId: { name: "C", dtype: "BYTES" },
      },
    });
    expect(sequenceBatching!.controlInput).toEqual([
      { name: "S", control: [control({ int32FalseTrue: [0, 1] })] },
      { name: "R", control: [control({ kind: "CONTROL_SEQUENCE_READY", boolFalseTrue: [false, true] })] },
      { name: "C", control: [control({ kind: "CONTROL_SEQUENCE_CORRID", dataType: "TYPE_STRING" })] },
    ]);
  });

  it("report misspelt names", () => {
    const sequence = { strategie: "direct", controls: { strat: "S" } } as SequenceOptions;
    expect(validateOptions({ sequence })).toEqual([
      "config.sequence has an unknown option 'strategie': did you mean 'strategy'?",
      "config.sequence.controls has an unknown option 'strat': did you mean 'start'?",
    ]);
  });

  it("are printed in the order of Triton's message", () => {
    const json = toConfigJson(resolved({ strategy: "direct", controls: { start: "S" } })).sequence_batching;
    expect(JSON.stringify(json)).toBe(
      '{"direct":{"max_queue_delay_microseconds":0,"minimum_slot_utilization":0},' +
        '"max_sequence_idle_microseconds":1000000,"control_input":[{"name":"S","control":[{"kind":' +
        '"CONTROL_SEQUENCE_START","int32_false_true":[0,1],"fp32_false_true":[],"bool_false_true":[],' +
        '"data_type":"TYPE_INVALID"}]}],"state":[],"iterative_sequence":false}',
    );
  });
});

describe("sequence batching is rejected", () => {
  it("when a control tensor has no name", () => {
    expect(withControl({ int32FalseTrue: [0, 1] }, "")).toEqual([
      "sequence batching control tensor must have a name for m",
    ]);
  });

  it("when a control has no values, too many kinds of them, or not two", () => {
    const kind = "CONTROL_SEQUENCE_START for m";
    expect(withControl({})).toEqual([
      `sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for ${kind}`,
    ]);
    expect(withControl({ int32FalseTrue: [0, 1], fp32FalseTrue: [0, 1] })).toEqual([
      "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and " +
        `'bool_false_true' for ${kind}`,
    ]);
    expect(withControl({ fp32FalseTrue: [0] })).toEqual([
      `sequence batching control 'fp32_false_true' must have exactly 2 entries for ${kind}`,
    ]);
  });

  it("when a control is there twice", () => {
    const start = control({ int32FalseTrue: [0, 1] });
    const twice = ["A", "B"].map((name) => ({ name, control: [start] }));
    expect(problems({ controlInput: twice })).toEqual([
      "sequence batching specifies multiple CONTROL_SEQUENCE_START tensors for m",
    ]);
  });

  it("when the correlation id has values, or no integer or text type", () => {
    const kind = "CONTROL_SEQUENCE_CORRID";
    expect(withControl({ kind, int32FalseTrue: [0, 1], dataType: "TYPE_FP32" })).toEqual([
      "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for " +
        "CONTROL_SEQUENCE_CORRID for m",
      "unexpected data type for control CONTROL_SEQUENCE_CORRID for m. Allowed data types are TYPE_UINT64, " +
        "TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
    ]);
  });

  it("when preferred sizes are impossible", () => {
    const oldest = { ...resolved({}).sequenceBatching!.oldest!, preferredBatchSize: [0, 5] };
    expect(problems({ oldest })).toEqual([
      "sequence batching preferred batch size must be positive for m",
      "sequence batching preferred batch size must be <= max batch size for m",
    ]);
  });
});
