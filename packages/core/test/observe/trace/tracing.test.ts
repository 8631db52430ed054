import { TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import {
  DEFAULT_TRACE_SETTINGS,
  readTraceCount,
  readTraceLevels,
  readTraceNumber,
  resolveTraceOptions,
  type TraceOptions,
  traceSettingTexts,
} from "../../../src/observe/trace-settings.js";
import { traceBench } from "./trace-bench.js";

describe("trace settings of a server", () => {
  it("default to Triton's", () => {
    expect(resolveTraceOptions({})).toEqual({
      levels: [],
      rate: 1000,
      count: -1,
      logFrequency: 0,
      file: "",
      mode: "triton",
      ofMode: {},
    });
  });

  it.each<[TraceOptions["level"], string[]]>([
    ["OFF", []],
    ["TIMESTAMPS", ["TIMESTAMPS"]],
    [
      ["TENSORS", "TIMESTAMPS"],
      ["TIMESTAMPS", "TENSORS"],
    ],
    ["MIN", ["TIMESTAMPS"]],
    ["MAX", ["TIMESTAMPS"]],
    [[], []],
  ])("the level %j is read as %j", (level, levels) => {
    expect(resolveTraceOptions({ level: level! }).levels).toEqual(levels);
  });

  it("report all invalid values at once", () => {
    const options = { level: ["OFF", "LOUD"], rate: -1, count: 1.5, logFrequency: "x", file: 1, mode: "x" };
    expect(() => resolveTraceOptions(options as unknown as TraceOptions)).toThrow(
      new TritonError(
        "INVALID_ARG",
        "trace.level: expected OFF, TIMESTAMPS or TENSORS, got 'LOUD'\n" +
          "trace.level: Expect only one trace level 'OFF' is specified\n" +
          "trace.file: expected a path, got 1\n" +
          'trace.mode: expected "triton" or "opentelemetry", got \'x\'\n' +
          "trace.rate: expected an integer from 0 to 4294967295, got -1\n" +
          "trace.count: expected an integer from -1 to 2147483647, got 1.5\n" +
          "trace.logFrequency: expected an integer from 0 to 4294967295, got x",
        { reason: "INVALID_OPTION" },
      ),
    );
  });

  it("log a warning when nothing would be recorded", () => {
    const { messages, run } = traceBench({ file: "" });
    expect(messages).toEqual(["tracing is off: trace file name is not given"]);
    expect(run()).toBe(false);
  });
});

describe("trace sampling", () => {
  it("takes every n-th request, counted over all models", () => {
    const { run } = traceBench({ rate: 3 });
    expect(["a", "b", "a", "b", "a", "b", "a"].map(run)).toEqual([
      false,
      false,
      true,
      false,
      false,
      true,
      false,
    ]);
  });

  it("takes no request while tracing is off", () => {
    const { run, tracing } = traceBench({ level: "OFF" });
    expect([run(), run()]).toEqual([false, false]);
    tracing.update("", { levels: ["TIMESTAMPS"] });
    expect(run()).toBe(true);
  });

  it("stops after the count, and the settings show what is left", () => {
    const { run, tracing } = traceBench({ count: 2, rate: 2 });
    expect([1, 2, 3, 4, 5, 6].map(() => run())).toEqual([false, true, false, true, false, false]);
    expect(tracing.settings().count).toBe(0);
  });

  it("follows the model's own settings", () => {
    const { run, tracing } = traceBench({ rate: 1000 });
    tracing.update("mine", { rate: 2 });
    expect([run("mine"), run("other"), run("mine")]).toEqual([false, false, true]);
  });
});

describe("an update of trace settings", () => {
  it("applies to models without a setting of their own when it changes the server", () => {
    const { tracing } = traceBench();
    tracing.update("m", { rate: 12, logFrequency: 34 });
    tracing.update("", { rate: 56, count: 78, levels: [] });
    expect(tracing.settings()).toMatchObject({ levels: [], rate: 56, count: 78, logFrequency: 0 });
    expect(tracing.settings("m")).toMatchObject({ levels: [], rate: 12, count: 78, logFrequency: 34 });
    expect(tracing.settings("other")).toEqual(tracing.settings());
  });

  it("restores the value of the server, or that of the start, for null", () => {
    const { tracing } = traceBench();
    const initial = tracing.settings();
    tracing.update("m", { rate: 12, logFrequency: 34 });
    tracing.update("", { rate: 56, count: 78, levels: [] });
    tracing.update("", { rate: null, count: null });
    expect(tracing.settings()).toEqual({ ...initial, levels: [] });
    expect(tracing.settings("m")).toMatchObject({ levels: [], rate: 12, count: -1, logFrequency: 34 });
    tracing.update("m", { rate: null, levels: null });
    expect(tracing.settings("m")).toMatchObject({ levels: [], rate: 1, logFrequency: 34 });
    tracing.update("m", { logFrequency: null });
    tracing.update("", { levels: null });
    expect(tracing.settings("m")).toEqual(initial);
  });

  it("restarts a count that it does not mention", () => {
    const { tracing, run } = traceBench({ count: 5 });
    run();
    expect(tracing.settings().count).toBe(4);
    tracing.update("", { rate: 2 });
    expect(tracing.settings().count).toBe(5);
  });

  it("restarts the counting of requests", () => {
    const { tracing, run } = traceBench({ rate: 2 });
    expect(run()).toBe(false);
    tracing.update("", {});
    expect([run(), run()]).toEqual([false, true]);
  });

  it.each([
    [{}, { rate: 0 }, "Attempting to set invalid trace setting :sample rate must be non-zero"],
    [{}, { count: 0 }, "Attempting to set invalid trace setting :"],
    [
      { level: "OFF", file: "" },
      { levels: ["TIMESTAMPS"] },
      "Attempting to set invalid trace setting :trace file name is not given",
    ],
  ] as const)("is rejected and changes nothing with %j and %j", (options, changes, text) => {
    const { tracing } = traceBench(options);
    const before = tracing.settings();
    for (const model of ["", "m"]) {
      expect(() => tracing.update(model, changes)).toThrow(
        new TritonError("INVALID_ARG", text, { reason: "INVALID_SETTING" }),
      );
      expect(tracing.settings(model)).toEqual(before);
    }
  });

  it("may set anything while tracing is off", () => {
    const { tracing } = traceBench({ level: "OFF" });
    tracing.update("", { rate: 0, count: 0 });
    expect(tracing.settings()).toMatchObject({ rate: 0, count: 0 });
  });
});

describe("trace mode opentelemetry", () => {
  it("is refused without a tracer, with what to pass", () => {
    expect(() => resolveTraceOptions({ mode: "opentelemetry" })).toThrow(
      'trace.mode: "opentelemetry" needs an extension that makes spans, got none; pass one in the option extensions',
    );
  });

  it("is the default with a tracer, for every request", () => {
    expect(resolveTraceOptions({}, true)).toMatchObject({
      mode: "opentelemetry",
      levels: ["TIMESTAMPS"],
      rate: 1,
    });
  });
});

describe("read trace setting", () => {
  it("clients see all settings as texts", () => {
    const settings = { ...DEFAULT_TRACE_SETTINGS, rate: 1, file: "f" };
    expect(traceSettingTexts(settings)).toEqual({
      trace_level: ["OFF"],
      trace_rate: "1",
      trace_count: "-1",
      log_frequency: "0",
      trace_file: "f",
      trace_mode: "triton",
    });
    expect(traceSettingTexts({ ...settings, levels: ["TENSORS"] })).toMatchObject({
      trace_level: ["TENSORS"],
    });
    const ofMode = { url: "u", bsp_max_queue_size: "1" };
    expect(traceSettingTexts({ ...settings, mode: "opentelemetry", ofMode })).toEqual({
      trace_level: ["OFF"],
      trace_rate: "1",
      trace_count: "-1",
      trace_mode: "opentelemetry",
      ...ofMode,
    });
  });
});

describe("trace levels", () => {
  it.each([
    [["TIMESTAMPS"], ["TIMESTAMPS"]],
    [
      ["TENSORS", "TIMESTAMPS"],
      ["TIMESTAMPS", "TENSORS"],
    ],
    [["OFF"], []],
    [["MIN"], undefined],
    [["MIN", "TENSORS"], ["TENSORS"]],
    [["timestamps"], undefined],
    [[], undefined],
  ])("%j are read as %j", (names, levels) => {
    expect(readTraceLevels(names)).toEqual(levels);
  });

  it("reject OFF together with others", () => {
    expect(() => readTraceLevels(["OFF", "TENSORS"])).toThrow(
      "Expect only one trace level 'OFF' is specified",
    );
  });
});

describe("numbers in trace settings", () => {
  it.each([
    ["5", 5],
    [" +7x", 7],
    ["-1", 4294967295],
    ["2147483647", 2147483647],
  ])("%j is the rate %d", (text, value) => {
    expect(readTraceNumber("trace_rate", text)).toBe(value);
  });

  it.each([
    ["", "Unable to parse 'log_frequency', got: "],
    ["x1", "Unable to parse 'log_frequency', got: x1"],
    [
      "2147483648",
      "Unable to parse 'log_frequency', value is out of range [ 0, 4294967295 ], got: 2147483648",
    ],
  ])("%j is not a valid rate", (text, message) => {
    expect(() => readTraceNumber("log_frequency", text)).toThrow(message);
  });

  it.each([
    ["-2", "Unable to parse 'trace_count'. Expecting value >= -1, got: -2"],
    [
      "99999999999",
      "Unable to parse 'trace_count', value is out of range [ -1, 2147483647 ], got: 99999999999",
    ],
    ["many", "Unable to parse 'trace_count', got: many"],
  ])("%j is not a valid count", (text, message) => {
    expect(() => readTraceCount(text)).toThrow(message);
  });

  it("accept counts from -1", () => {
    expect([readTraceCount("-1"), readTraceCount("0")]).toEqual([-1, 0]);
  });
});
