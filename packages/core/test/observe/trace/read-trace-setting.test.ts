import { describe, expect, it } from "vitest";
import {
  DEFAULT_TRACE_SETTINGS,
  readTraceCount,
  readTraceLevels,
  readTraceNumber,
  traceSettingTexts,
} from "../../../src/observe/trace-settings.js";

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
  expect(traceSettingTexts({ ...settings, levels: ["TENSORS"] })).toMatchObject({ trace_level: ["TENSORS"] });
  const ofMode = { url: "u", bsp_max_queue_size: "1" };
  expect(traceSettingTexts({ ...settings, mode: "opentelemetry", ofMode })).toEqual({
    trace_level: ["OFF"],
    trace_rate: "1",
    trace_count: "-1",
    trace_mode: "opentelemetry",
    ...ofMode,
  });
});
