import {
  LOG_FORMATS,
  readTraceCount,
  readTraceLevels,
  readTraceNumber,
  type TraceChanges,
  traceSettingTexts,
} from "@tritonjs/core/internal";
import type { LoadParameters, LogFormat } from "@tritonjs/core/types";
import { errorFor, type ModelStatisticsReport, TritonError } from "@tritonjs/protocol";
import { toConfigJson } from "@tritonjs/protocol/config";
import type { Log, LogSettings } from "@tritonjs/server";
import { readJson } from "../exchange/loop-turns.js";
import { latin1Text } from "../exchange/request.js";
import { emptyResponse, faultResponse, jsonResponse, type V2Response } from "../exchange/response.js";
import {
  asArray,
  asBoolean,
  asBytes,
  asText,
  asUnsigned,
  find,
  type JsonValue,
  members,
} from "../json/json-value.js";
import { elementsOf } from "../json/parse-json.js";
import { decodeText } from "../json/text.js";
import type { PlainJson } from "../json/write-json.js";
import { getRoute, type HttpExchange, modelRoutePath, postRoute, type Route } from "./route.js";

/**
 * Liveness, readiness, and readiness of a model. The status is the answer. The body for a model that is not ready is
 * Triton's, with the reason if one is known. Nobody needs a token for it, so the reason has no absolute path.
 */
export const healthRoutes: readonly Route[] = [
  getRoute(
    /^\/v2\/health\/live$/,
    "health",
    ({ service }) => emptyResponse(service.isLive() ? 200 : 400, "text/plain"),
    "text/plain",
  ),
  getRoute(
    /^\/v2\/health\/ready$/,
    "health",
    async ({ service }) => emptyResponse((await service.checkReady()) ? 200 : 400, "text/plain"),
    "text/plain",
  ),
  getRoute(
    modelRoutePath("ready"),
    "health",
    async ({ service, model, version }) => {
      const { ready, reason } = await service.modelReadiness(model, version);
      if (ready) return emptyResponse(200, "text/plain");
      const shown = reason === "" ? undefined : publicReason(reason, model);
      return faultResponse(400, "Model version not ready", "text/plain", {}, { reason: shown });
    },
    "text/plain",
  ),
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
  getRoute(/^\/v2$/, "metadata", ({ service }) => {
    const { name, version, extensions } = service.serverMetadata();
    return jsonResponse({ name, version, extensions });
  }),
  getRoute(modelRoutePath(""), "metadata", ({ service, model, version }) => {
    const metadata = service.modelMetadata(model, version);
    return jsonResponse({
      name: metadata.name,
      versions: metadata.versions,
      platform: metadata.platform,
      inputs: metadata.inputs.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
      outputs: metadata.outputs.map(({ name, datatype, shape }) => ({ name, datatype, shape })),
    });
  }),
  getRoute(modelRoutePath("config"), "model-config", ({ service, model, version }) => {
    const config = toConfigJson(service.modelConfig(model, version), (value) => value);
    return jsonResponse(config as { [name: string]: PlainJson });
  }),
];

/** Statistics of one model or of all. A model with the name `stats` has none of its own. */
export const statisticsRoutes: readonly Route[] = [/^\/v2\/models\/stats$/, modelRoutePath("stats")].map(
  (path) =>
    getRoute(path, "statistics", ({ service, model, version }) =>
      jsonResponse({ model_stats: service.statistics(model, version).map(reportJson) }),
    ),
);

type Duration = ModelStatisticsReport["inferenceStats"]["success"];

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

/** The model repository: the index of the models with their states, loading and unloading. */
export const repositoryRoutes: readonly Route[] = [
  postRoute(/^\/v2\/repository(?:\/(?<repository>[^/]+))?\/index$/, "model-repository", async (exchange) => {
    const ready = await readOptionalJson(exchange, (json) => find(json, "ready"));
    if (ready !== undefined && typeof ready !== "boolean") {
      throw errorFor("INVALID_PARAMETER", "Invalid value for 'ready': expected a boolean");
    }
    const index = await exchange.service.repositoryIndex(ready ?? false);
    return jsonResponse(index.map(({ name, version, state, reason }) => ({ name, version, state, reason })));
  }),
  postRoute(
    /^\/v2\/repository(?:\/(?<repository>[^/]+))?\/models\/(?<model>[^/]+)\/load$/,
    "model-repository",
    async (exchange) => {
      refuseRepository(exchange);
      const parameters = await readOptionalJson(exchange, loadParameters);
      await exchange.service.loadModel(exchange.model, parameters);
      return emptyResponse(200, "application/json");
    },
  ),
  postRoute(
    /^\/v2\/repository(?:\/(?<repository>[^/]+))?\/models\/(?<model>[^/]+)\/unload$/,
    "model-repository",
    async (exchange) => {
      refuseRepository(exchange);
      const given = await readOptionalJson(exchange, (json) =>
        find(find(json, "parameters"), "unload_dependents"),
      );
      await exchange.service.unloadModel(exchange.model, { unloadDependents: given === true });
      return emptyResponse(200, "application/json");
    },
  ),
];

function refuseRepository({ repository }: HttpExchange): void {
  if (repository !== "") {
    throw new TritonError("UNSUPPORTED", "'repository_name' specification is not supported");
  }
}

/** Parameters of a load request: a configuration, and files in base64 under `file:<path>`. */
function loadParameters(body: JsonValue | undefined): LoadParameters {
  const given = find(body, "parameters");
  if (given === undefined) return {};
  const files = new Map<string, Uint8Array>();
  let config: string | undefined;
  for (const [name, value] of members(given)) {
    const bytes = asBytes(value);
    if (name === "config") config = decodeText(bytes);
    else if (name.startsWith("file:")) files.set(name.slice("file:".length), fromBase64(name, bytes));
    else throw new TritonError("INTERNAL", "unexpected error on creating Triton parameter");
  }
  return { config, files };
}

function fromBase64(name: string, bytes: Uint8Array): Uint8Array {
  const text = latin1Text(bytes);
  if (!isBase64(text)) {
    throw errorFor("INVALID_LOAD_REQUEST", `load parameter '${name}': expected base64`);
  }
  return Buffer.from(text, "base64");
}

/**
 * True for base64 with white space anywhere. White space is removed first: a pattern for both would take quadratic time
 * for a long run of spaces.
 */
function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/]*={0,2}$/.test(text.replace(/\s+/g, ""));
}

/** Reads the JSON body of a request. `use` takes it, or undefined for an empty body. */
async function readOptionalJson<T>(
  { request, memory, maxInputSize }: HttpExchange,
  use: (json: JsonValue | undefined) => T,
): Promise<T> {
  const body = await request.readBody(memory, maxInputSize);
  return body.length === 0 ? use(undefined) : readJson(request, body, use);
}

export const sharedMemoryRoutes: readonly Route[] = [
  getRoute(regionPath("system", "status"), "shared-memory", ({ service, region }) =>
    jsonResponse(
      service.sharedMemory
        .systemStatus(region)
        .map(({ name, key, offset, byteSize }) => ({ name, key, offset, byte_size: byteSize })),
    ),
  ),
  postRoute(regionPath("system", "register"), "shared-memory", registerSystem),
  postRoute(regionPath("system", "unregister"), "shared-memory", ({ service, region }) => {
    service.sharedMemory.unregisterSystem(region);
    return emptyResponse(200, "application/json");
  }),
  getRoute(regionPath("cuda", "status"), "shared-memory", ({ service, region }) =>
    jsonResponse(
      service.sharedMemory
        .cudaStatus(region)
        .map(({ name, deviceId, byteSize }) => ({ name, device_id: deviceId, byte_size: byteSize })),
    ),
  ),
  postRoute(regionPath("cuda", "register"), "shared-memory", registerCuda),
  postRoute(regionPath("cuda", "unregister"), "shared-memory", ({ service, region }) => {
    service.sharedMemory.unregisterCuda(region);
    return emptyResponse(200, "application/json");
  }),
];

async function registerSystem({
  service: { sharedMemory },
  region,
  request,
  memory,
  maxInputSize,
}: HttpExchange): Promise<V2Response> {
  sharedMemory.checkAllowed();
  checkNamed("system", region);
  const range = await readJson(request, await request.readBody(memory, maxInputSize), (json) => {
    const offset = find(json, "offset");
    return {
      // Other names end at a NUL. A key does not: the shortened key would open another object than the client named.
      key: decodeText(asBytes(field(json, "key"))),
      offset: offset === undefined ? 0 : asUnsigned(offset),
      byteSize: asUnsigned(field(json, "byte_size")),
    };
  });
  await sharedMemory.registerSystem(region, range);
  return emptyResponse(200, "application/json");
}

async function registerCuda({
  service: { sharedMemory },
  region,
  request,
  memory,
  maxInputSize,
}: HttpExchange): Promise<V2Response> {
  sharedMemory.checkAllowed();
  checkNamed("cuda", region);
  // Triton without a GPU does not read the body.
  sharedMemory.gpuRegions(region);
  const memoryOfGpu = await readJson(request, await request.readBody(memory, maxInputSize), (json) => {
    const handle = decodeText(asBytes(field(field(json, "raw_handle"), "b64")));
    if (!isBase64(handle)) throw notAHandle();
    return {
      rawHandle: new Uint8Array(Buffer.from(handle, "base64")),
      deviceId: asUnsigned(field(json, "device_id")),
      byteSize: asUnsigned(field(json, "byte_size")),
    };
  });
  if (memoryOfGpu.rawHandle.byteLength !== HANDLE_BYTES) throw notAHandle();
  sharedMemory.registerCuda(region, memoryOfGpu);
  return emptyResponse(200, "application/json");
}

/** Size of a `cudaIpcMemHandle_t`. */
const HANDLE_BYTES = 64;

function notAHandle(): TritonError {
  return errorFor("INVALID_REGION", "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t");
}

function regionPath(kind: "system" | "cuda", action: string): RegExp {
  return new RegExp(`^/v2/${kind}sharedmemory(?:/region/(?<region>[^/]+))?/${action}$`);
}

function checkNamed(kind: string, region: string): void {
  if (region !== "") return;
  throw errorFor("INVALID_REGION", `'region name' is necessary to register ${kind} shared memory region`);
}

function field(json: JsonValue, name: string): JsonValue {
  const value = find(json, name);
  if (value !== undefined) return value;
  throw errorFor("INVALID_REGION", `Shared memory register request has no '${name}' field`);
}

/** Trace settings, of the server or of a model: read by GET, changed and read by POST. */
const traceRoutes: readonly Route[] = [
  /^\/v2\/trace\/setting$/,
  /^\/v2\/models\/(?<model>[^/]+)\/trace\/setting$/,
].map((path) => ({
  path,
  methods: ["GET", "POST"],
  group: "trace",
  errorType: "application/json",
  async handle({ request, memory, service, model, maxInputSize }) {
    const { tracing } = service;
    if (tracing === undefined) throw errorFor("FEATURE_DISABLED", "the server does not support tracing");
    if (model !== "" && !(await service.checkModelReady(model, ""))) {
      throw errorFor("MODEL_NOT_AVAILABLE", `Request for unknown model : ${model}`);
    }
    if (request.method === "POST") {
      const body = await request.readBody(memory, maxInputSize);
      const changes =
        body.length === 0 ? readTraceChanges(undefined) : await readJson(request, body, readTraceChanges);
      tracing.update(model, changes);
    }
    return jsonResponse(traceSettingTexts(tracing.settings(model)) as PlainJson);
  },
}));

/** The settings of the log: read by GET, changed and read by POST. */
const loggingRoute: Route = {
  path: /^\/v2\/logging$/,
  methods: ["GET", "POST"],
  group: "logging",
  errorType: "application/json",
  async handle({ request, memory, maxInputSize, service }) {
    if (request.method === "POST") {
      const body = await request.readBody(memory, maxInputSize);
      await readJson(request, body, (json) => changeLog(service.log, json));
    }
    return jsonResponse(logSettingsJson(service.log.settings));
  },
};

export const settingsRoutes: readonly Route[] = [...traceRoutes, loggingRoute];

/**
 * Reads the changes of trace settings in a request; null undoes an earlier change.
 *
 * @throws TritonError for the first bad setting, UNSUPPORTED for the file.
 */
function readTraceChanges(request: JsonValue | undefined): TraceChanges {
  if (find(request, "trace_file") !== undefined) {
    throw errorFor("SETTING_READ_ONLY", "trace file location can not be updated through network protocol");
  }
  const changes: TraceChanges = {};
  const levels = find(request, "trace_level");
  if (levels === null) changes.levels = null;
  else if (levels !== undefined) {
    const named = readTraceLevels(elementsOf(asArray(levels)).map((level) => asText(level)));
    if (named !== undefined) changes.levels = named;
  }
  const one = <T>(name: string, read: (text: string) => T): T | null | undefined => {
    const value = find(request, name);
    return value === undefined || value === null ? value : read(asText(value));
  };
  const rate = one("trace_rate", (text) => readTraceNumber("trace_rate", text));
  if (rate !== undefined) changes.rate = rate;
  const count = one("trace_count", (text) => readTraceCount(text, "got:"));
  if (count !== undefined) changes.count = count;
  const frequency = one("log_frequency", (text) => readTraceNumber("log_frequency", text));
  if (frequency !== undefined) changes.logFrequency = frequency;
  return changes;
}

/**
 * Changes the log settings that the request names. As in Triton, settings before a bad one change all the same.
 *
 * @throws TritonError for the first bad setting, UNSUPPORTED for the log file.
 */
function changeLog(log: Log, request: JsonValue): void {
  if (setting(request, "log_file") !== undefined) {
    throw errorFor("SETTING_READ_ONLY", "log file location can not be updated through network protocol");
  }
  const flags = { log_info: "info", log_warning: "warning", log_error: "error" } as const;
  for (const [name, key] of Object.entries(flags)) {
    const value = setting(request, name);
    if (value !== undefined) log.update({ [key]: asBoolean(value) });
  }
  const verboseLevel = setting(request, "log_verbose_level");
  if (verboseLevel !== undefined) log.update({ verboseLevel: Number(asUnsigned(verboseLevel)) });
  const format = setting(request, "log_format");
  if (format !== undefined) log.update({ format: logFormat(asText(format)) });
}

function logSettingsJson(settings: LogSettings): PlainJson {
  return {
    log_file: settings.file,
    log_info: settings.info,
    log_warning: settings.warning,
    log_error: settings.error,
    log_verbose_level: settings.verboseLevel,
    log_format: settings.format,
  };
}

/** The value of a setting; null leaves the setting as it is. */
function setting(request: JsonValue, name: string): JsonValue | undefined {
  return find(request, name) ?? undefined;
}

function logFormat(text: string): LogFormat {
  const format = LOG_FORMATS.find((known) => known === text);
  if (format !== undefined) return format;
  throw errorFor("INVALID_LOG_FORMAT", `invalid argument for --log_format, got: ${text}`);
}
