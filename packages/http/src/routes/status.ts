import { toConfigJson } from "@tritonjs/core/config";
import type { InferenceService } from "@tritonjs/core/frontend";
import type { ModelStatisticsReport } from "@tritonjs/protocol";
import { firstHeader, type V2Request } from "../exchange/request.js";
import { emptyResponse, faultResponse, jsonResponse, type V2Response } from "../exchange/response.js";
import type { PlainJson } from "../json/write-json.js";
import { modelRoutePath, type Route } from "./route.js";

/**
 * Liveness, readiness, and readiness of a model. The status is the answer. The body for a model that is not ready is
 * Triton's, with the reason if one is known. Nobody needs a token for it, so the reason has no absolute path.
 */
export const healthRoutes: readonly Route[] = [
  {
    path: /^\/v2\/health\/live$/,
    methods: ["GET"],
    group: "health",
    errorType: "text/plain",
    handle: ({ service }) => emptyResponse(service.isLive() ? 200 : 400, "text/plain"),
  },
  {
    path: /^\/v2\/health\/ready$/,
    methods: ["GET"],
    group: "health",
    errorType: "text/plain",
    handle: async ({ service }) => emptyResponse((await service.checkReady()) ? 200 : 400, "text/plain"),
  },
  {
    path: modelRoutePath("ready"),
    methods: ["GET"],
    group: "health",
    errorType: "text/plain",
    async handle({ service, model, version }) {
      const { ready, reason } = await service.modelReadiness(model, version);
      if (ready) return emptyResponse(200, "text/plain");
      const shown = reason === "" ? undefined : publicReason(reason, model);
      return faultResponse(400, "Model version not ready", "text/plain", {}, { reason: shown });
    },
  },
];

/*
 * A URL; a quoted absolute path, which may have spaces; any other absolute path. A slash behind a word belongs to a
 * relative path.
 */
const PLACES =
  /[a-z][a-z\d+.-]+:\/\/[^\s'"`]+|(?<=(['"`]))(?:[a-z]:)?[\\/][^'"`\n]*(?=\1)|(?<![\w.~-])(?:[a-z]:)?[\\/][^\s'"`,;:()]*\w[^\s'"`,;:()]*/gi;

/**
 * The reason why a model is not ready, for clients that may be anybody: absolute paths are cut to the part from the
 * directory of the model, or to their last name.
 *
 * @example
 * ```ts
 * publicReason("failed to stat file /srv/models/resnet/1/model.onnx", "resnet");
 * // failed to stat file resnet/1/model.onnx
 * ```
 */
export function publicReason(reason: string, modelName: string): string {
  return reason.replace(PLACES, (place) => {
    const isUrl = /^[a-z][a-z\d+.-]+:\/\//i.test(place);
    if (isUrl && !/^file:/i.test(place)) return place;
    const names = place.split(/[\\/]+/).filter((name) => name !== "");
    const start = names.lastIndexOf(modelName);
    return start < 0 ? (names.at(-1) ?? place) : names.slice(start).join("/");
  });
}

/** Metadata of the server and its models, and configurations. */
export const metadataRoutes: readonly Route[] = [
  {
    path: /^\/v2$/,
    methods: ["GET"],
    group: "metadata",
    errorType: "application/json",
    handle({ service }) {
      const { name, version, extensions } = service.serverMetadata();
      return jsonResponse({ name, version, extensions });
    },
  },
  {
    path: modelRoutePath(""),
    methods: ["GET"],
    group: "metadata",
    errorType: "application/json",
    handle({ service, model, version }) {
      const metadata = service.modelMetadata(model, version);
      return jsonResponse({
        name: metadata.name,
        versions: metadata.versions,
        platform: metadata.platform,
        inputs: metadata.inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
        outputs: metadata.outputs.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
      });
    },
  },
  {
    path: modelRoutePath("config"),
    methods: ["GET"],
    group: "model-config",
    errorType: "application/json",
    handle({ service, model, version }) {
      return jsonResponse(toConfigJson(service.modelConfig(model, version)) as { [name: string]: PlainJson });
    },
  },
];

/** Statistics of one model or of all. A model with the name `stats` has none of its own. */
export const statisticsRoutes: readonly Route[] = [/^\/v2\/models\/stats$/, modelRoutePath("stats")].map(
  (path) => ({
    path,
    methods: ["GET"],
    group: "statistics",
    errorType: "application/json",
    handle({ service, model, version }) {
      return jsonResponse(toStatisticsJson(service.statistics(model, version)));
    },
  }),
);

type Duration = ModelStatisticsReport["inferenceStats"]["success"];

/** The answer of the statistics routes. */
function toStatisticsJson(reports: readonly ModelStatisticsReport[]): PlainJson {
  return { model_stats: reports.map(reportJson) };
}

function reportJson(report: ModelStatisticsReport): PlainJson {
  const { inferenceStats: stats } = report;
  return {
    name: report.name,
    version: report.version,
    last_inference: report.lastInference,
    inference_count: report.inferenceCount,
    execution_count: report.executionCount,
    inference_stats: {
      success: duration(stats.success),
      fail: duration(stats.fail),
      queue: duration(stats.queue),
      compute_input: duration(stats.computeInput),
      compute_infer: duration(stats.computeInfer),
      compute_output: duration(stats.computeOutput),
      cache_hit: duration(stats.cacheHit),
      cache_miss: duration(stats.cacheMiss),
    },
    response_stats: Object.fromEntries(
      Object.entries(report.responseStats).map(([index, response]) => [
        index,
        {
          compute_infer: duration(response.computeInfer),
          compute_output: duration(response.computeOutput),
          success: duration(response.success),
          fail: duration(response.fail),
          empty_response: duration(response.emptyResponse),
          cancel: duration(response.cancel),
        },
      ]),
    ),
    batch_stats: report.batchStats.map((batch) => ({
      batch_size: batch.batchSize,
      compute_input: duration(batch.computeInput),
      compute_infer: duration(batch.computeInfer),
      compute_output: duration(batch.computeOutput),
    })),
    memory_usage: report.memoryUsage.map(({ type, id, byteSize }) => ({ type, id, byte_size: byteSize })),
  };
}

function duration({ count, ns }: Duration): PlainJson {
  return { count, ns };
}

/** The metrics page, as the frontend on a port of its own serves it. */
export const metricsRoute: Route = {
  path: /^\/metrics\/?$/,
  methods: ["GET"],
  group: "metrics",
  errorType: "text/plain",
  handle: ({ service, request }) => metricsResponse(service, request),
};

/** Answers with the metrics page, in the OpenMetrics format for a client that wants it. */
export async function metricsResponse(service: InferenceService, request: V2Request): Promise<V2Response> {
  const { type, text } = await service.metricsFor(firstHeader(request, "accept"));
  return { status: 200, headers: { "content-type": type }, body: Buffer.from(text, "utf8") };
}
