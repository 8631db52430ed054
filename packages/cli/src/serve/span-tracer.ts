import type { TritonOptions } from "@tritonjs/core";
import { TritonError } from "@tritonjs/protocol";
import type { SpanSettings } from "./trace-settings.js";

/** What the mode opentelemetry needs. The command does not bring it along, because it is 20 MB. */
const PACKAGES = [
  "@tritonjs/opentelemetry",
  "@opentelemetry/api",
  "@opentelemetry/core",
  "@opentelemetry/exporter-trace-otlp-http",
  "@opentelemetry/resources",
  "@opentelemetry/sdk-trace",
] as const;

/**
 * Loads the exporter of spans.
 *
 * @param onFailure called for spans that the collector did not accept
 * @throws TritonError UNSUPPORTED that names the packages to install, INVALID_ARG for an invalid setting.
 */
export async function loadSpanTracer(
  settings: SpanSettings,
  onFailure: (message: string) => void,
): Promise<NonNullable<TritonOptions["tracer"]>> {
  let exporter: typeof import("@tritonjs/opentelemetry/otlp");
  try {
    exporter = await import("@tritonjs/opentelemetry/otlp");
  } catch (cause) {
    throw new TritonError(
      "UNSUPPORTED",
      `trace mode opentelemetry: packages are missing; install them beside @tritonjs/cli: npm install ${PACKAGES.join(" ")}`,
      { cause },
    );
  }
  return exporter.otlp({ ...settings, onFailure });
}
