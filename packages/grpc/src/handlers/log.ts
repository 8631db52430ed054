import { type InferenceService, LOG_FORMATS, type Log } from "@tritonjs/core/frontend";
import { inference, inferencePath } from "@tritonjs/grpc-messages";
import { TritonError } from "@tritonjs/protocol";
import { type Method, unary } from "../transport/method.js";

type Setting = inference.LogSettingsRequest.SettingValue.$Properties;

/** `LogSettings`: changes the log settings in the request, then returns all of them. */
export function logMethods({ log }: InferenceService): Method[] {
  return [
    unary(
      {
        path: inferencePath("LogSettings"),
        protocol: "logging",
        request: inference.LogSettingsRequest,
        response: inference.LogSettingsResponse,
      },
      ({ settings }) => {
        change(log, settings ?? {});
        return { settings: describe(log) };
      },
    ),
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
