import type { LoadReport } from "./load-report.js";

/** The field numbers of `xds.data.orca.v3.OrcaLoadReport`. */
const NAMED_METRICS_FIELD = 8;
const APPLICATION_UTILIZATION_FIELD = 9;

const WIRE_DOUBLE = 1;
const WIRE_BYTES = 2;

/**
 * Writes a report in the format that the client names, in any case: `text`, `json` or `bin`.
 *
 * @returns `TEXT name=value, ...`, `JSON {...}` or `BIN <base64>`; undefined for another format
 */
export function writeLoadReport(report: LoadReport, format: string): string | undefined {
  switch (format.trim().toLowerCase()) {
    case "text":
      return `TEXT ${entriesOf(report)
        .map(([name, value]) => `${name}=${decimal(value)}`)
        .join(", ")}`;
    case "json":
      return `JSON ${JSON.stringify({
        application_utilization: report.applicationUtilization,
        named_metrics: report.namedMetrics,
      })}`;
    case "bin":
      return `BIN ${loadReportMessage(report).toString("base64")}`;
    default:
      return undefined;
  }
}

/** Encodes a report as a message `xds.data.orca.v3.OrcaLoadReport`. */
export function loadReportMessage({ applicationUtilization, namedMetrics }: LoadReport): Buffer {
  const entries = Object.entries(namedMetrics).map(([name, value]) => {
    const entry = Buffer.concat([bytesField(1, Buffer.from(name)), doubleField(2, value)]);
    return bytesField(NAMED_METRICS_FIELD, entry);
  });
  if (applicationUtilization === undefined) return Buffer.concat(entries);
  return Buffer.concat([...entries, doubleField(APPLICATION_UTILIZATION_FIELD, applicationUtilization)]);
}

function entriesOf({ applicationUtilization, namedMetrics }: LoadReport): [name: string, value: number][] {
  const named = Object.entries(namedMetrics).map<[string, number]>(([name, value]) => [
    `named_metrics.${name}`,
    value,
  ]);
  if (applicationUtilization === undefined) return named;
  return [["application_utilization", applicationUtilization], ...named];
}

/** Writes whole numbers without a fraction and others with six digits, as Triton does. */
function decimal(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(6);
}

/** A field of bytes that are shorter than 128. */
function bytesField(field: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.of((field << 3) | WIRE_BYTES, bytes.length), bytes]);
}

function doubleField(field: number, value: number): Buffer {
  const bytes = Buffer.alloc(9);
  bytes[0] = (field << 3) | WIRE_DOUBLE;
  bytes.writeDoubleLE(value, 1);
  return bytes;
}
