import { TritonError } from "@tritonjs/core";
import { inference } from "#proto";
import { type Method, unary } from "../transport/method.js";
import { inferencePath } from "./paths.js";

/** `TraceSetting`: answered as by a server that was built without tracing. */
export function traceMethods(): Method[] {
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
  ];
}
