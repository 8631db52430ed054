import { TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { resolveTraceOptions, type TraceOptions } from "../../../src/observe/trace-settings.js";
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
      'trace.mode: "opentelemetry" needs the option tracer, got none; pass openTelemetry() of @tritonjs/core/opentelemetry',
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
