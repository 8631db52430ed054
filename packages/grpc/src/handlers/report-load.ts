import {
  type InferenceService,
  LOAD_REPORT_FORMAT_HEADER,
  LOAD_REPORT_HEADER,
  loadReportMessage,
  writeLoadReport,
} from "@tritonjs/core/frontend";
import type { Call } from "../transport/call.js";

/** The format of the load report that a client asks for; undefined for a client that does not ask. */
export function reportFormat({ headers }: Call): string | undefined {
  return headers.get(LOAD_REPORT_FORMAT_HEADER);
}

/**
 * Adds the load of a model to the trailing metadata of a call. The binary format has the key that gRPC's own load
 * balancers read: `endpoint-load-metrics-bin`.
 */
export async function reportLoad(
  service: InferenceService,
  call: Call,
  model: { readonly name: string; readonly version: number },
  format: string,
): Promise<void> {
  const report = await service.loadReport?.(model.name, String(model.version)).catch(() => undefined);
  if (report === undefined) return;
  if (format.trim().toLowerCase() === "bin") {
    call.addTrailer(`${LOAD_REPORT_HEADER}-bin`, loadReportMessage(report));
    return;
  }
  const text = writeLoadReport(report, format);
  if (text !== undefined) call.addTrailer(LOAD_REPORT_HEADER, text);
}
