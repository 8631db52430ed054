import {
  type InferenceService,
  LOG_FORMATS,
  type Log,
  readTraceCount,
  readTraceLevels,
  readTraceNumber,
  type TraceChanges,
  traceSettingTexts,
} from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import type { inference } from "@tritonjs/protocol/grpc";
import { type Method, rpc } from "../transport/method.js";

type Settings = Readonly<Record<string, inference.TraceSettingRequest.SettingValue.$Properties>>;

/** `TraceSetting`: changes the trace settings in the request, then returns all of them. */
export function traceMethods(service: InferenceService): Method[] {
  return [
    rpc("TraceSetting", "trace", async ({ settings, modelName }) => {
      const { tracing } = service;
      if (tracing === undefined)
        throw new TritonError("UNAVAILABLE", "the server does not support trace", {
          reason: "FEATURE_DISABLED",
        });
      if (modelName !== "" && !(await service.checkModelReady(modelName, ""))) {
        throw new TritonError("INVALID_ARG", `Request for unknown model : ${modelName}`, {
          reason: "MODEL_NOT_AVAILABLE",
        });
      }
      const given = settings ?? {};
      if (Object.keys(given).length > 0) tracing.update(modelName, readChanges(given));
      const texts = Object.entries(traceSettingTexts(tracing.settings(modelName)));
      return {
        settings: Object.fromEntries(
          texts.map(([name, value]) => [name, { value: typeof value === "string" ? [value] : [...value] }]),
        ),
      };
    }),
  ];
}

/** Reads the requested changes. A setting without a value undoes an earlier change. */
function readChanges(settings: Settings): TraceChanges {
  const given = new Map(Object.entries(settings));
  if (given.has("trace_file")) {
    throw new TritonError("UNSUPPORTED", "trace file location can not be updated through network protocol", {
      reason: "SETTING_READ_ONLY",
    });
  }
  const changes: TraceChanges = {};
  if (given.has("trace_level")) {
    const names = given.get("trace_level")?.value ?? [];
    const levels = names.length === 0 ? null : readTraceLevels(names);
    if (levels !== undefined) changes.levels = levels;
  }
  const one = <T>(name: string, read: (text: string) => T): T | null | undefined => {
    if (!given.has(name)) return undefined;
    const [text, ...more] = given.get(name)?.value ?? [];
    if (more.length > 0)
      throw new TritonError("INVALID_ARG", `expect only 1 value for '${name}'`, {
        reason: "INVALID_SETTING",
      });
    return text === undefined ? null : read(text);
  };
  const rate = one("trace_rate", (text) => readTraceNumber("trace_rate", text));
  if (rate !== undefined) changes.rate = rate;
  const count = one("trace_count", (text) => readTraceCount(text));
  if (count !== undefined) changes.count = count;
  const frequency = one("log_frequency", (text) => readTraceNumber("log_frequency", text));
  if (frequency !== undefined) changes.logFrequency = frequency;
  return changes;
}

type Setting = inference.LogSettingsRequest.SettingValue.$Properties;

/** `LogSettings`: changes the log settings in the request, then returns all of them. */
export function logMethods({ log }: InferenceService): Method[] {
  return [
    rpc("LogSettings", "logging", ({ settings }) => {
      change(log, settings ?? {});
      return { settings: describe(log) };
    }),
  ];
}

/** Changes the settings that the request names. As in Triton, settings before a bad one change all the same. */
function change(log: Log, settings: Readonly<Record<string, Setting>>): void {
  const given = new Map(Object.entries(settings));
  if (given.has("log_file")) {
    throw new TritonError("UNSUPPORTED", "log file location can not be updated through network protocol", {
      reason: "SETTING_READ_ONLY",
    });
  }
  const flags = { log_info: "info", log_warning: "warning", log_error: "error" } as const;
  for (const [name, key] of Object.entries(flags)) {
    const value = given.get(name);
    if (value !== undefined) log.update({ [key]: value.boolParam ?? expect("boolean", name) });
  }
  const level = given.get("log_verbose_level");
  if (level !== undefined) {
    log.update({ verboseLevel: level.uint32Param ?? expect("int32", "log_verbose_level") });
  }
  const format = given.get("log_format");
  if (format === undefined) return;
  const text = format.stringParam ?? expect("string", "log_format");
  const known = LOG_FORMATS.find((one) => one === text);
  if (known === undefined) {
    throw new TritonError("INVALID_ARG", `invalid argument for log_format, got: ${text}`, {
      reason: "INVALID_SETTING",
    });
  }
  log.update({ format: known });
}

function expect(type: string, name: string): never {
  throw new TritonError("INVALID_ARG", `expect ${type} for '${name}'`, { reason: "INVALID_SETTING" });
}

function describe({ settings }: Log): Record<string, inference.LogSettingsResponse.SettingValue.$Properties> {
  return {
    log_file: { stringParam: settings.file },
    log_info: { boolParam: settings.info },
    log_warning: { boolParam: settings.warning },
    log_error: { boolParam: settings.error },
    log_verbose_level: { uint32Param: settings.verboseLevel },
    log_format: { stringParam: settings.format },
  };
}
