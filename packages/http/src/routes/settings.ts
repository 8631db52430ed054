import type { Log, LogSettings } from "@tritonjs/core/frontend";
import {
  LOG_FORMATS,
  readTraceCount,
  readTraceLevels,
  readTraceNumber,
  type TraceChanges,
  traceSettingTexts,
} from "@tritonjs/core/internal";
import type { LogFormat } from "@tritonjs/core/types";
import { TritonError } from "@tritonjs/protocol";
import { readJson } from "../exchange/loop-turns.js";
import { jsonResponse } from "../exchange/response.js";
import { asArray, asBoolean, asText, asUnsigned, find, type JsonValue } from "../json/json-value.js";
import { elementsOf } from "../json/parse-json.js";
import type { PlainJson } from "../json/write-json.js";
import type { Route } from "./route.js";

/** Trace settings, of the server or of a model: read by GET, changed and read by POST. */
const traceRoutes: readonly Route[] = [
  /^\/v2\/trace\/setting$/,
  /^\/v2\/models\/(?<model>[^/]+)\/trace\/setting$/,
].map((path) => ({
  path,
  methods: ["GET", "POST"],
  group: "trace",
  errorType: "application/json",
  async handle({ request, memory, service, model, maxInputSize }) {
    const { tracing } = service;
    if (tracing === undefined)
      throw new TritonError("UNAVAILABLE", "the server does not support tracing", {
        reason: "FEATURE_DISABLED",
      });
    if (model !== "" && !(await service.checkModelReady(model, ""))) {
      throw new TritonError("INVALID_ARG", `Request for unknown model : ${model}`, {
        reason: "MODEL_NOT_AVAILABLE",
      });
    }
    if (request.method === "POST") {
      const body = await request.readBody(memory, maxInputSize);
      const changes =
        body.length === 0 ? readTraceChanges(undefined) : await readJson(request, body, readTraceChanges);
      tracing.update(model, changes);
    }
    return jsonResponse(traceSettingTexts(tracing.settings(model)) as PlainJson);
  },
}));

/** The settings of the log: read by GET, changed and read by POST. */
const loggingRoute: Route = {
  path: /^\/v2\/logging$/,
  methods: ["GET", "POST"],
  group: "logging",
  errorType: "application/json",
  async handle({ request, memory, maxInputSize, service }) {
    if (request.method === "POST") {
      const body = await request.readBody(memory, maxInputSize);
      await readJson(request, body, (json) => changeLog(service.log, json));
    }
    return jsonResponse(logSettingsJson(service.log.settings));
  },
};

/** Settings of traces and of the log. */
export const settingsRoutes: readonly Route[] = [...traceRoutes, loggingRoute];

/**
 * Reads the changes of trace settings in a request; null undoes an earlier change.
 *
 * @throws TritonError for the first bad setting, UNSUPPORTED for the file.
 */
function readTraceChanges(request: JsonValue | undefined): TraceChanges {
  if (find(request, "trace_file") !== undefined) {
    throw new TritonError("UNSUPPORTED", "trace file location can not be updated through network protocol", {
      reason: "SETTING_READ_ONLY",
    });
  }
  const changes: TraceChanges = {};
  const levels = find(request, "trace_level");
  if (levels === null) changes.levels = null;
  else if (levels !== undefined) {
    const named = readTraceLevels(elementsOf(asArray(levels)).map((level) => asText(level)));
    if (named !== undefined) changes.levels = named;
  }
  const rate = find(request, "trace_rate");
  if (rate !== undefined) {
    changes.rate = rate === null ? null : readTraceNumber("trace_rate", asText(rate));
  }
  const count = find(request, "trace_count");
  if (count !== undefined) changes.count = count === null ? null : readTraceCount(asText(count), "got:");
  const frequency = find(request, "log_frequency");
  if (frequency !== undefined) {
    changes.logFrequency = frequency === null ? null : readTraceNumber("log_frequency", asText(frequency));
  }
  return changes;
}

/**
 * Changes the log settings that the request names. As in Triton, settings before a bad one change all the same.
 *
 * @throws TritonError for the first bad setting, UNSUPPORTED for the log file.
 */
function changeLog(log: Log, request: JsonValue): void {
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
function logSettingsJson(settings: LogSettings): PlainJson {
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
