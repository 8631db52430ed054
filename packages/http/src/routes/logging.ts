import { changeLog, logSettingsJson } from "../decode/log-changes.js";
import { jsonResponse } from "../exchange/response.js";
import { parseJson } from "../json/parse-json.js";
import type { Route } from "./route.js";

/** The settings of the log: read by GET, changed and read by POST. */
export const loggingRoute: Route = {
  path: /^\/v2\/logging$/,
  methods: ["GET", "POST"],
  group: "logging",
  errorType: "application/json",
  async handle({ request, memory, maxInputSize, service }) {
    if (request.method === "POST")
      changeLog(service.log, parseJson(await request.readBody(memory, maxInputSize)));
    return jsonResponse(logSettingsJson(service.log.settings));
  },
};
