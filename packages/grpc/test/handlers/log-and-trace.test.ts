import { status } from "@grpc/grpc-js";
import type { inference } from "@tritonjs/protocol/grpc";
import { Tracing } from "@tritonjs/server";
import { realClock } from "@tritonjs/testing";
import { describe, expect, test } from "vitest";
import { FakeService } from "../support/fake-service.js";
import { serve } from "../support/serve.js";

type Settings = NonNullable<inference.LogSettingsRequest.$Properties["settings"]>;

async function logSettings() {
  const service = new FakeService();
  const { client } = await serve(service);
  const change = (settings: Settings) => client.ask("LogSettings", { settings });
  return { service, change };
}

describe("log", () => {
  test("LogSettings returns the settings without changing them", async () => {
    const { change } = await logSettings();
    expect(await change({})).toMatchObject({
      settings: {
        log_file: { stringParam: "" },
        log_info: { boolParam: true },
        log_warning: { boolParam: true },
        log_error: { boolParam: true },
        log_verbose_level: { uint32Param: 0 },
        log_format: { stringParam: "default" },
      },
    });
  });

  test("LogSettings changes the named settings", async () => {
    const { service, change } = await logSettings();
    const answer = await change({
      log_info: { boolParam: false },
      log_verbose_level: { uint32Param: 2 },
      log_format: { stringParam: "ISO8601" },
    });
    expect(answer).toMatchObject({
      settings: { log_info: { boolParam: false }, log_verbose_level: { uint32Param: 2 } },
    });
    expect(service.log.settings).toMatchObject({
      info: false,
      warning: true,
      verboseLevel: 2,
      format: "ISO8601",
    });
  });

  test.each<[Settings, number, string]>([
    [
      { log_file: { stringParam: "x" } },
      status.UNIMPLEMENTED,
      "log file location can not be updated through network protocol",
    ],
    [{ log_info: { stringParam: "true" } }, status.INVALID_ARGUMENT, "expect boolean for 'log_info'"],
    [{ log_warning: { uint32Param: 1 } }, status.INVALID_ARGUMENT, "expect boolean for 'log_warning'"],
    [{ log_error: {} }, status.INVALID_ARGUMENT, "expect boolean for 'log_error'"],
    [
      { log_verbose_level: { boolParam: true } },
      status.INVALID_ARGUMENT,
      "expect int32 for 'log_verbose_level'",
    ],
    [{ log_format: { boolParam: true } }, status.INVALID_ARGUMENT, "expect string for 'log_format'"],
    [
      { log_format: { stringParam: "x" } },
      status.INVALID_ARGUMENT,
      "invalid argument for log_format, got: x",
    ],
  ])("LogSettings rejects %j", async (settings, code, details) => {
    const { change } = await logSettings();
    await expect(change(settings)).rejects.toMatchObject({ code, details });
  });

  test("LogSettings keeps a valid change that comes before an invalid one", async () => {
    const { service, change } = await logSettings();
    const bad = change({ log_info: { boolParam: false }, log_error: { stringParam: "x" } });
    await expect(bad).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });
    expect(service.log.settings).toMatchObject({ info: false, error: true });
  });
});

type Values = Readonly<Record<string, readonly string[]>>;

const initial: Values = {
  trace_level: ["TIMESTAMPS"],
  trace_rate: ["1"],
  trace_count: ["-1"],
  log_frequency: ["0"],
  trace_file: ["traces.json"],
  trace_mode: ["triton"],
};

async function traced() {
  const fake = new FakeService();
  const options = { level: "TIMESTAMPS", rate: 1, file: "traces.json" } as const;
  const service = Object.assign(fake, { tracing: new Tracing(options, realClock, fake.log) });
  const { client } = await serve(service);
  return async (given: Values = {}, modelName = ""): Promise<Values> => {
    const settings = Object.fromEntries(
      Object.entries(given).map(([name, value]) => [name, { value: [...value] }]),
    );
    const answer = await client.ask("TraceSetting", { settings, modelName });
    return Object.fromEntries(
      Object.entries(answer.settings).map(([name, { value }]) => [name, value ?? []]),
    );
  };
}

describe("trace", () => {
  test("TraceSetting returns the settings", async () => {
    const settings = await traced();
    expect(await settings()).toEqual(initial);
    expect(await settings({}, "m")).toEqual(initial);
  });

  test("TraceSetting changes the named settings, and resets a setting without a value", async () => {
    const settings = await traced();
    await settings({ trace_rate: ["12"], log_frequency: ["34"] }, "m");
    const off = { trace_level: ["OFF"], trace_count: ["78"] };
    expect(await settings({ ...off, trace_rate: ["56"] })).toEqual({
      ...initial,
      ...off,
      trace_rate: ["56"],
    });
    expect(await settings({ trace_rate: [], trace_count: [] })).toEqual({ ...initial, trace_level: ["OFF"] });
    const own = { ...initial, trace_level: ["OFF"], log_frequency: ["34"] };
    expect(await settings({}, "m")).toEqual({ ...own, trace_rate: ["12"] });
    expect(await settings({ trace_rate: [], trace_level: [] }, "m")).toEqual(own);
  });
});

describe("TraceSetting changes nothing", () => {
  test.each<[Values, number, string]>([
    [
      { trace_file: ["x"] },
      status.UNIMPLEMENTED,
      "trace file location can not be updated through network protocol",
    ],
    [
      { trace_level: ["OFF", "OFF"] },
      status.INVALID_ARGUMENT,
      "Expect only one trace level 'OFF' is specified",
    ],
    [{ trace_rate: ["1", "2"] }, status.INVALID_ARGUMENT, "expect only 1 value for 'trace_rate'"],
    [{ trace_rate: ["x"] }, status.INVALID_ARGUMENT, "Unable to parse 'trace_rate', got: x"],
    [
      { trace_count: ["-2"] },
      status.INVALID_ARGUMENT,
      "Unable to parse 'trace_count'. Expecting value >= -1, got: -2",
    ],
    [{ trace_count: ["0"] }, status.INVALID_ARGUMENT, "Attempting to set invalid trace setting :"],
  ])("for the invalid settings %j", async (given, code, details) => {
    const settings = await traced();
    await expect(settings(given)).rejects.toMatchObject({ code, details });
    expect(await settings()).toEqual(initial);
  });

  test("for an unknown model", async () => {
    const settings = await traced();
    await expect(settings({}, "none")).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "Request for unknown model : none",
    });
  });
});
