import { VERSION } from "@tritonjs/core/internal";
import type { EndpointGroup } from "@tritonjs/core/types";
import { DATA_TYPES } from "@tritonjs/protocol";
import { jsonResponse } from "../exchange/response.js";
import type { PlainJson } from "../json/write-json.js";
import { getRoute, type Route } from "./route.js";

/** The OpenAPI document of the other routes. Triton has none, so this route is optional. */
export const openApiRoute: Route = getRoute(/^\/v2\/openapi\.json$/, "metadata", () =>
  jsonResponse(openApiDocument()),
);

/** An OpenAPI 3.1 document. */
export type OpenApiDocument = { readonly [name: string]: PlainJson | undefined };

/** One operation: its id, its summary, and the schemas of its body and of its answer. */
interface Operation {
  readonly id: string;
  readonly group: EndpointGroup;
  readonly summary: string;
  readonly body?: string;
  /** Schema of the answer; undefined for an answer without a body. */
  readonly answer?: string | undefined;
  /** True when tensors may also follow the JSON as bytes. */
  readonly binary?: boolean;
  /** True when the answer is a stream of server-sent events. */
  readonly events?: boolean;
}

type Methods = Partial<Record<"get" | "post", Operation>>;
type Operations = Readonly<Record<string, Methods>>;

function get(id: string, group: EndpointGroup, summary: string, answer?: string): Methods {
  return { get: { id, group, summary, answer } };
}

/** @param facts the schemas of the body and the answer, unless the operation has neither */
function post(
  id: string,
  group: EndpointGroup,
  summary: string,
  facts: Omit<Operation, "id" | "group" | "summary"> = {},
): Methods {
  return { post: { id, group, summary, ...facts } };
}

const MODEL = "/v2/models/{model}";
const GENERATED = { body: "GenerateRequest", answer: "GenerateResponse" };
const TRACE = { body: "TraceSettings", answer: "TraceSettings" };
const LOG = { body: "LogSettings", answer: "LogSettings" };
const REPOSITORY = { body: "RepositoryRequest" };

/** Operations on a model, by the part of the path after the model or its version. */
const modelOperations: Operations = {
  "": get("modelMetadata", "metadata", "Inputs and outputs", "ModelMetadata"),
  "/ready": get("modelReady", "health", "Readiness of a model"),
  "/config": get("modelConfig", "model-config", "Configuration", "ModelConfig"),
  "/stats": get("modelStatistics", "statistics", "Statistics", "ModelStatistics"),
  "/infer": post("infer", "inference", "Inference", {
    body: "InferRequest",
    answer: "InferResponse",
    binary: true,
  }),
  "/generate": post("generate", "inference", "Inference with flat JSON", GENERATED),
  "/generate_stream": post("generateStream", "inference", "Inference with flat JSON, answers as they come", {
    ...GENERATED,
    events: true,
  }),
};

const repositoryOperations: Operations = {
  "/index": post("repositoryIndex", "model-repository", "All models and their states", {
    body: "RepositoryIndexRequest",
    answer: "RepositoryIndex",
  }),
  "/models/{model}/load": post("loadModel", "model-repository", "Load a model", REPOSITORY),
  "/models/{model}/unload": post("unloadModel", "model-repository", "Unload a model", REPOSITORY),
};

function sharedMemoryOperations(kind: "system" | "cuda"): Operations {
  const id = `${kind}SharedMemory`;
  return {
    "/status": get(`${id}Status`, "shared-memory", "Registered regions", "SharedMemoryStatus"),
    "/register": post(`${id}Register`, "shared-memory", "Register", { body: "SharedMemoryRegister" }),
    "/unregister": post(`${id}Unregister`, "shared-memory", "Unregister"),
  };
}

const traceSettings: Methods = {
  ...get("traceSettings", "trace", "Trace settings", "TraceSettings"),
  ...post("updateTraceSettings", "trace", "Change trace settings", TRACE),
};

/** All paths. If a path has a longer and a shorter form, a suffix distinguishes the operations of the longer one. */
const paths: Operations = {
  "/v2": get("serverMetadata", "metadata", "Name, extensions", "ServerMetadata"),
  "/v2/health/live": get("serverLive", "health", "Liveness"),
  "/v2/health/ready": get("serverReady", "health", "Readiness"),
  "/v2/models/stats": get("statistics", "statistics", "Statistics of all models", "ModelStatistics"),
  ...under(MODEL, modelOperations),
  ...under(`${MODEL}/versions/{version}`, modelOperations, "OfVersion"),
  ...under("/v2/repository", repositoryOperations),
  ...under("/v2/repository/{repository}", repositoryOperations, "OfRepository"),
  ...under("/v2/systemsharedmemory", sharedMemoryOperations("system")),
  ...under("/v2/systemsharedmemory/region/{region}", sharedMemoryOperations("system"), "OfRegion"),
  ...under("/v2/cudasharedmemory", sharedMemoryOperations("cuda")),
  ...under("/v2/cudasharedmemory/region/{region}", sharedMemoryOperations("cuda"), "OfRegion"),
  "/v2/trace/setting": traceSettings,
  ...under(MODEL, { "/trace/setting": traceSettings }, "OfModel"),
  "/v2/logging": {
    ...get("logSettings", "logging", "Log settings", "LogSettings"),
    ...post("updateLogSettings", "logging", "Change log settings", LOG),
  },
};

function under(base: string, operations: Operations, suffix = ""): Record<string, Methods> {
  const named = ([method, operation]: [string, Operation]) => [
    method,
    { ...operation, id: operation.id + suffix },
  ];
  return Object.fromEntries(
    Object.entries(operations).map(([path, methods]) => [
      base + path,
      Object.fromEntries(Object.entries(methods).map(named)) as Methods,
    ]),
  );
}

/** The v2 routes as an OpenAPI 3.1 document, for generators of clients and documentation. */
export function openApiDocument(): OpenApiDocument {
  return {
    openapi: "3.1.0",
    info: {
      title: "v2 inference protocol",
      version: VERSION,
      description: "The KServe / Triton v2 protocol over HTTP.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    paths: Object.fromEntries(
      Object.entries(paths).map(([path, methods]) => [path, pathItem(path, methods)]),
    ),
    components: { schemas },
  };
}

function pathItem(path: string, methods: Methods): PlainJson {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  const parameters = names.map((name) => ({
    name,
    in: "path",
    required: true,
    schema: name === "version" ? { type: "string", pattern: "^[0-9]+$" } : { type: "string" },
  }));
  const operations = Object.entries(methods).map(([method, operation]) => [method, operationJson(operation)]);
  return { ...Object.fromEntries(operations), parameters: parameters.length > 0 ? parameters : undefined };
}

/** Header of a 503 answer, if the server can estimate when a retry makes sense. */
const retryAfter = {
  "Retry-After": {
    description: "With status 503: seconds after which it is worth trying again, where the server can tell.",
    schema: { type: "integer", minimum: 0 },
  },
};

function operationJson({ id, group, summary, body, answer, binary, events }: Operation): PlainJson {
  const answerType = events ? "text/event-stream" : "application/json";
  return {
    operationId: id,
    tags: [group],
    summary,
    requestBody: body && {
      content: content("application/json", body, binary),
      required: group === "inference",
    },
    responses: {
      "200": { description: "Success", content: answer && content(answerType, answer, binary) },
      default: {
        description: "Failure",
        headers: group === "inference" ? retryAfter : undefined,
        content: content("application/json", "Error", false),
      },
    },
  };
}

function content(type: string, schema: string, binary: boolean | undefined): PlainJson {
  const json = { [type]: { schema: { $ref: `#/components/schemas/${schema}` } } };
  return binary ? { ...json, "application/octet-stream": {} } : json;
}

const text = { type: "string" };
const bool = { type: "boolean" };
const shape = { type: "array", items: { type: "integer", format: "int64" } };
const count = { type: "integer", format: "int64", minimum: 0 };
const duration = object({ count, ns: count });
const parameters = {
  type: "object",
  additionalProperties: { type: ["string", "integer", "number", "boolean"] },
};
const data = {
  type: "array",
  description: "The elements, nested or flat. `NaN`, `Infinity` and `-Infinity` may stand as bare tokens.",
};
const datatype = { type: "string", enum: [...DATA_TYPES] };
const tensorMetadata = object({ name: text, datatype, shape }, ["name", "datatype", "shape"]);

/** Schemas of the bodies of requests and answers, by name. */
const schemas: { readonly [name: string]: PlainJson } = {
  Error: object({ error: text, reason: text }, ["error"]),
  InferRequest: object(
    { id: text, parameters, inputs: list("InputTensor"), outputs: list("RequestedOutput") },
    ["inputs"],
  ),
  InputTensor: object({ name: text, shape, datatype, parameters, data }, ["name", "shape", "datatype"]),
  RequestedOutput: object({ name: text, parameters }, ["name"]),
  InferResponse: object(
    { id: text, model_name: text, model_version: text, parameters, outputs: list("OutputTensor") },
    ["model_name", "model_version", "outputs"],
  ),
  OutputTensor: object({ name: text, shape, datatype, parameters, data }, ["name", "shape", "datatype"]),
  GenerateRequest: {
    type: "object",
    description: "Inputs of the model by name, as one value or a flat array; other members are parameters.",
    properties: { id: text, parameters: { type: "object" } },
    additionalProperties: true,
  },
  GenerateResponse: {
    type: "object",
    description: "Outputs of the model by name, as one value or a flat array, next to what is listed.",
    properties: { id: text, model_name: text, model_version: text },
    additionalProperties: true,
  },
  ServerMetadata: object({ name: text, version: text, extensions: { type: "array", items: text } }),
  ModelMetadata: object({
    name: text,
    versions: { type: "array", items: text },
    platform: text,
    inputs: { type: "array", items: tensorMetadata },
    outputs: { type: "array", items: tensorMetadata },
  }),
  ModelConfig: { type: "object", description: "Triton's ModelConfig as JSON, with all defaults." },
  ModelStatistics: object({
    model_stats: {
      type: "array",
      items: object({
        name: text,
        version: text,
        last_inference: count,
        inference_count: count,
        execution_count: count,
        inference_stats: { type: "object", additionalProperties: duration },
        batch_stats: { type: "array", items: { type: "object" } },
      }),
    },
  }),
  RepositoryIndexRequest: object({ ready: bool }),
  RepositoryIndex: {
    type: "array",
    items: object({ name: text, version: text, state: text, reason: text }, ["name"]),
  },
  RepositoryRequest: object({ parameters: { type: "object" } }),
  SharedMemoryRegister: object({
    key: text,
    offset: count,
    byte_size: count,
    raw_handle: { type: "object" },
  }),
  SharedMemoryStatus: {
    type: "array",
    items: object({ name: text, key: text, offset: count, device_id: count, byte_size: count }, [
      "name",
      "byte_size",
    ]),
  },
  TraceSettings: { type: "object" },
  LogSettings: object({
    log_file: text,
    log_info: bool,
    log_warning: bool,
    log_error: bool,
    log_verbose_level: count,
    log_format: { type: "string", enum: ["default", "ISO8601", "json"] },
  }),
};

function object(
  properties: { readonly [name: string]: PlainJson },
  required: readonly string[] = [],
): PlainJson {
  return { type: "object", properties, required: required.length > 0 ? required : undefined };
}

function list(schema: string): PlainJson {
  return { type: "array", items: { $ref: `#/components/schemas/${schema}` } };
}
