import { LOG_FORMATS, type Log, type LogSettings } from "@tritonjs/core/frontend";
import type { LogFormat } from "@tritonjs/core/types";
import { TritonError } from "@tritonjs/protocol";
import { asBoolean, asText, asUnsigned, find } from "../json/access.js";
import type { JsonValue } from "../json/json-value.js";
import type { PlainJson } from "../json/write-json.js";

/**
 * Changes the log settings that the request names. As in Triton, settings before a bad one change all the same.
 *
 * @throws TritonError for the first bad setting, UNSUPPORTED for the log file.
 */
export function changeLog(log: Log, request: JsonValue): void {
  if (setting(request, "log_file") !== undefined) {
    throw new TritonError("UNSUPPORTED", "log file location can not be updated through network protocol", {
      reason: "SETTING_READ_ONLY",
    });
  }
  const info = setting(request, "log_info");
  if (info !== undefined) log.update({ info: asBoolean(info) });
  const warning = setting(request, "log_warning");
  if (warning !== undefined) log.update({ warning: asBoolean(warning) });
  const error = setting(request, "log_error");
  if (error !== undefined) log.update({ error: asBoolean(error) });
  const verboseLevel = setting(request, "log_verbose_level");
  if (verboseLevel !== undefined) log.update({ verboseLevel: Number(asUnsigned(verboseLevel)) });
  const format = setting(request, "log_format");
  if (format !== undefined) log.update({ format: logFormat(asText(format)) });
}

/** The settings as clients see them. */
export function logSettingsJson(settings: LogSettings): PlainJson {
  return {
    log_file: settings.file,
    log_info: settings.info,
    log_warning: settings.warning,
    log_error: settings.error,
    log_verbose_level: settings.verboseLevel,
    log_format: settings.format,
  };
}

/** The value of a setting; null leaves the setting as it is. */
function setting(request: JsonValue, name: string): JsonValue | undefined {
  return find(request, name) ?? undefined;
}

function logFormat(text: string): LogFormat {
  const format = LOG_FORMATS.find((known) => known === text);
  if (format !== undefined) return format;
  throw new TritonError("UNAVAILABLE", `invalid argument for --log_format, got: ${text}`, {
    reason: "INVALID_LOG_FORMAT",
  });
}
