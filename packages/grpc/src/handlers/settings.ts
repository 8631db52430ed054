import { TritonError } from "@tritonjs/core";
import { inference } from "#proto";
import { type Method, unary } from "../transport/method.js";
import { inferencePath } from "./paths.js";

/** `TraceSetting` and `LogSettings`: answered as by a server that was built without them. */
export function settingsMethods(): Method[] {
  return [
    unary(
      {
        path: inferencePath("TraceSetting"),
        protocol: "trace",
        request: inference.TraceSettingRequest,
        response: inference.TraceSettingResponse,
      },
      () => {
        throw new TritonError("UNAVAILABLE", "the server does not support trace");
      },
    ),
    unary(
      {
        path: inferencePath("LogSettings"),
        protocol: "logging",
        request: inference.LogSettingsRequest,
        response: inference.LogSettingsResponse,
      },
      () => {
        throw new TritonError("UNAVAILABLE", "the server does not support dynamic logging");
      },
    ),
  ];
}
