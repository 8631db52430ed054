export { type OpenTelemetryOptions, openTelemetry } from "./open-telemetry.js";
export type { TextGenerator, TextGenerators } from "./spans/text-generator.js";
export { requestContext, traceHeaders } from "./trace-headers.js";
