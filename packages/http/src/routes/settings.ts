import { traceSettingTexts } from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import { changeLog, logSettingsJson } from "../decode/log-changes.js";
import { readTraceChanges } from "../decode/trace-changes.js";
import { readJson } from "../exchange/read-json.js";
import { jsonResponse } from "../exchange/response.js";
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
