import {
  type Log,
  type ModelRegistry,
  type ModelSource,
  type ModelVersion,
  parseVersion,
  reportStatistics,
  unreadyReason,
} from "@tritonjs/core/internal/server";
import { errorFor, type ModelStatisticsReport, type TritonError } from "@tritonjs/protocol";

/**
 * Reports the statistics of the ready versions of all models, of one model, or of one version.
 *
 * @param name name of the model; empty for all
 * @param version version in decimal digits; empty for all
 * @throws TritonError INVALID_ARG if the named model or version is not ready.
 */
export function reportReady(registry: ModelRegistry, name: string, version: string): ModelStatisticsReport[] {
  const wanted = parseVersion(version);
  const ready = registry.ready(name === "" ? undefined : name);
  const chosen = wanted === undefined ? ready : ready.filter((model) => BigInt(model.version) === wanted);
  if (name !== "" && ready.length === 0) throw notAvailable(`requested model '${name}' is not available`);
  if (name !== "" && chosen.length === 0)
    throw notAvailable(`requested model version is not available for model '${name}'`);
  return chosen.map((model) => reportStatistics(model.name, model.version, model.statistics));
}

function notAvailable(text: string): TritonError {
  return errorFor("MODEL_NOT_AVAILABLE", text);
}

/** Load of the model that answered a request, in the terms of ORCA (Open Request Cost Aggregation). */
export interface LoadReport {
  /** Share of the model's instances that are busy, 0 to 1; undefined for an ensemble, which has none. */
  readonly applicationUtilization: number | undefined;
  /** Further values by name: `queue_length`, and for a model that generates text `kv_cache_utilization`. */
  readonly namedMetrics: Readonly<Record<string, number>>;
}

/** Header of a request that asks for a report, over gRPC a metadata key. Its value is the format. */
export const LOAD_REPORT_FORMAT_HEADER = "endpoint-load-metrics-format";

/** Header of an answer with a report in a text format. */
export const LOAD_REPORT_HEADER = "endpoint-load-metrics";

/** Reads a gauge that a model has set; undefined if there is no such gauge for the labels. */
type GaugeReader = (name: string, labels: Readonly<Record<string, string>>) => Promise<number | undefined>;

/** Values that text models show on the metrics page, by their names in a report. The first two are Triton's names. */
const GAUGES = {
  kv_cache_utilization: "tritonjs_generation_kv_cache_usage",
  max_token_capacity: "tritonjs_generation_token_capacity",
  num_requests_running: "tritonjs_generation_running",
  num_requests_waiting: "tritonjs_generation_waiting",
} as const;

export async function loadReportOf(model: ModelVersion, gaugeOf: GaugeReader): Promise<LoadReport> {
  const { name, version, statistics, isEnsemble } = model;
  const namedMetrics: Record<string, number> = { queue_length: statistics.pendingCount };
  const labels = { model: name, version: String(version) };
  for (const [metric, gauge] of Object.entries(GAUGES)) {
    const value = await gaugeOf(gauge, labels);
    if (value !== undefined) namedMetrics[metric] = value;
  }
  return { applicationUtilization: isEnsemble ? undefined : busyShare(model), namedMetrics };
}

function busyShare({ instances: { serving } }: ModelVersion): number {
  return serving.length === 0 ? 0 : serving.filter(({ busy }) => busy).length / serving.length;
}

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

function bytesField(field: number, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.of((field << 3) | WIRE_BYTES, bytes.length), bytes]);
}

function doubleField(field: number, value: number): Buffer {
  const bytes = Buffer.alloc(9);
  bytes[0] = (field << 3) | WIRE_DOUBLE;
  bytes.writeDoubleLE(value, 1);
  return bytes;
}

/** Whether a model can be used. */
export interface ModelReadiness {
  readonly ready: boolean;
  /** Why the model is not ready, or that a ready one is on disk only; otherwise empty. */
  readonly reason: string;
}

/**
 * Looks a model up and asks it whether it is ready. A model that is not served has the reasons of its versions.
 *
 * @param version version in decimal digits; empty for the highest that is ready
 */
export async function modelReadiness(
  name: string,
  version: string,
  registry: ModelRegistry,
  source: Pick<ModelSource, "problemOf">,
  log: Log,
): Promise<ModelReadiness> {
  let model: ModelVersion;
  try {
    model = registry.find(name, version);
  } catch {
    return {
      ready: false,
      reason: whyNotServed(name, version, registry) ?? source.problemOf(name) ?? "",
    };
  }
  const reason = await unreadyReason(model, log);
  return { ready: reason === undefined, reason: reason ?? model.reason };
}

/** Reasons of the versions that a name means; undefined if there are none. */
function whyNotServed(name: string, version: string, registry: ModelRegistry): string | undefined {
  const all = registry.versions(name).filter((one) => version === "" || one.version === Number(version));
  const reasons = all
    .filter(({ state }) => state !== "READY")
    .map((one) => ({ version: one.version, reason: one.reason || one.state.toLowerCase() }));
  if (reasons.length <= 1) return reasons[0]?.reason;
  return reasons.map((one) => `version ${one.version}: ${one.reason}`).join("; ");
}
