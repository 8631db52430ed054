import { TritonError } from "@tritonjs/core";
import type { Route } from "./route.js";

/** Trace settings, of the server or of a model: answered as by a server that was built without tracing. */
export const traceRoutes: readonly Route[] = [
  /^\/v2\/trace\/setting$/,
  /^\/v2\/models\/(?<model>[^/]+)\/trace\/setting$/,
].map((path) => ({
  path,
  methods: ["GET", "POST"],
  group: "trace",
  errorType: "application/json",
  handle() {
    throw new TritonError("UNAVAILABLE", "the server does not support tracing");
  },
}));
