import { TritonError } from "@tritonjs/core";
import { asBoolean, asText, asUnsigned, find } from "./json/access.js";
import type { JsonValue } from "./json/json-value.js";
import type { PlainJson } from "./json/write-json.js";

/** The settings of the logging extension, as clients read and change them. */
export class LogSettings {
  #info = true;
  #warning = true;
  #error = true;
  #verboseLevel = 0;
  #format: "default" | "ISO8601" = "default";

  /**
   * Changes what the request names. Those before a bad one are changed all the same, as Triton does.
   *
   * @throws TritonError for the first bad setting, UNSUPPORTED for the log file.
   */
  update(request: JsonValue): void {
    if (setting(request, "log_file") !== undefined) {
      throw new TritonError("UNSUPPORTED", "log file location can not be updated through network protocol");
    }
    const info = setting(request, "log_info");
    if (info !== undefined) this.#info = asBoolean(info);
    const warning = setting(request, "log_warning");
    if (warning !== undefined) this.#warning = asBoolean(warning);
    const error = setting(request, "log_error");
    if (error !== undefined) this.#error = asBoolean(error);
    const verboseLevel = setting(request, "log_verbose_level");
    if (verboseLevel !== undefined) this.#verboseLevel = Number(asUnsigned(verboseLevel));
    const format = setting(request, "log_format");
    if (format !== undefined) this.#format = logFormat(asText(format));
  }

  toJson(): PlainJson {
    return {
      log_file: "",
      log_info: this.#info,
      log_warning: this.#warning,
      log_error: this.#error,
      log_verbose_level: this.#verboseLevel,
      log_format: this.#format,
    };
  }
}

/** A setting that is null is left alone. */
function setting(request: JsonValue, name: string): JsonValue | undefined {
  return find(request, name) ?? undefined;
}

function logFormat(text: string): "default" | "ISO8601" {
  if (text === "default" || text === "ISO8601") return text;
  throw new TritonError("UNAVAILABLE", `invalid argument for --log_format, got: ${text}`);
}
