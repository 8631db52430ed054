import { createHash } from "node:crypto";
import type { EndpointGroup, ManagementOperation, ManagementRoute } from "@tritonjs/core/extension";
import { VERSION } from "@tritonjs/core/internal";
import { DATA_TYPES } from "@tritonjs/protocol";
import { jsonResponse } from "../exchange/response.js";
import type { PlainJson } from "../json/write-json.js";
import { getRoute, type Route } from "./route.js";

/** The OpenAPI document of the other routes. Triton has none, so this route is optional. */
export const openApiRoute: Route = getRoute(/^\/v2\/openapi\.json$/, "metadata", ({ service }) =>
  jsonResponse(openApiDocument(service.management)),
);

/** An OpenAPI 3.1 document. */
export type OpenApiDocument = { readonly [name: string]: PlainJson | undefined };

/** One operation: its id, its summary, and the schemas of its body and of its answer. */
interface Operation {
  readonly id: string;
  readonly group: EndpointGroup;
  readonly summary: string;
  readonly body?: Schema | undefined;
  /** Schema of the answer; undefined for an answer without a body. */
  readonly answer?: Schema | undefined;
  /** True when tensors may also follow the JSON as bytes. */
  readonly binary?: boolean;
  /** True when the answer is a stream of server-sent events. */
  readonly events?: boolean;
}

/** Name of a schema of the document, or a schema. */
type Schema = string | PlainJson;

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

/** Operations of a route of an extension. */
function extensionMethods({ group, get, post }: ManagementRoute): Methods {
  const operation = ({ id, summary, body, answer }: ManagementOperation): Operation => ({
    ...{ id, group, summary },
    body: body as PlainJson | undefined,
    answer: (answer ?? {}) as PlainJson,
  });
  return { ...(get && { get: operation(get) }), ...(post && { post: operation(post) }) };
}

/**
 * The v2 routes as an OpenAPI 3.1 document, for generators of clients and documentation.
 *
 * @param added routes of the server's extensions, `serviceOf(triton).management`; none unless given
 */
export function openApiDocument(added: readonly ManagementRoute[] = []): OpenApiDocument {
  const ofExtensions = added.map((route) => [`/v2/${route.path}`, extensionMethods(route)] as const);
  return {
    openapi: "3.1.0",
    info: {
      title: "v2 inference protocol",
      version: VERSION,
      description: "The KServe / Triton v2 protocol over HTTP.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    paths: Object.fromEntries(
      [...Object.entries(paths), ...ofExtensions].map(([path, methods]) => [path, pathItem(path, methods)]),
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

function content(type: string, given: Schema, binary: boolean | undefined): PlainJson {
  const schema = typeof given === "string" ? { $ref: `#/components/schemas/${given}` } : given;
  const json = { [type]: { schema } };
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

/**
 * The OpenAPI document as a page for people, beside `openapi.json`. It is one file without scripts, so it loads nothing
 * and works without a connection to the internet.
 */
export const openApiPageRoute: Route = getRoute(/^\/v2\/docs\/?$/, "metadata", ({ service }) => ({
  status: 200,
  headers: PAGE_HEADERS,
  body: Buffer.from(openApiPage(openApiDocument(service.management))),
}));

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
:root { --back: #fff; --text: #1a1a1a; --quiet: #595959; --link: #0645ad; --line: #8886; --code: #8881; }
@media (prefers-color-scheme: dark) { :root { --back: #16181c; --text: #e8e8e8; --quiet: #b0b0b0; --link: #9db8ff; } }
html { background: var(--back); color: var(--text); }
a { color: var(--link); }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; }
h2 { border-bottom: 1px solid var(--line); margin-top: 2.5rem; }
h3 { font-size: 1rem; margin: 1rem 0 0.25rem; }
code { background: var(--code); border-radius: 3px; overflow-wrap: anywhere; padding: 0.1em 0.3em; }
details { border: 1px solid var(--line); border-radius: 4px; margin: 0.5rem 0; padding: 0 0.75rem; }
details > :last-child { margin-bottom: 0.75rem; }
summary { cursor: pointer; padding: 0.5rem 0; }
summary b { display: inline-block; min-width: 3.5rem; }
summary span { color: var(--quiet); }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.75rem 0.25rem 0; text-align: left; vertical-align: top; }
`;

const PAGE_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** The members of the document that the page shows. */
interface ShownDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, ShownOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, ShownSchema>> };
}

interface ShownOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly requestBody?: { readonly content: ShownContent; readonly required: boolean };
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: ShownContent }>
  >;
}

type ShownContent = Readonly<Record<string, { readonly schema?: ShownSchema }>>;

interface ShownSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly items?: ShownSchema;
  readonly properties?: Readonly<Record<string, ShownSchema>>;
  readonly additionalProperties?: ShownSchema | boolean;
  readonly required?: readonly string[];
}

/** Writes the page. */
export function openApiPage(document: OpenApiDocument): string {
  const { info, paths, components } = document as unknown as ShownDocument;
  const operations = Object.entries(paths).flatMap(([path, { parameters: _, ...methods }]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const groups = [...new Set(operations.flatMap(({ operation }) => operation.tags))];
  const title = `${info.title} ${info.version}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${html(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>${html(title)}</h1>
<p>${html(info.description)} For generators of clients: <a href="openapi.json">openapi.json</a>.</p>
<nav aria-label="Groups"><p>${groups.map((group) => `<a href="#group-${group}">${group}</a>`).join(" · ")} · <a href="#schemas">schemas</a></p></nav>
</header>
<main>
${groups
  .map((group) => {
    const ofGroup = operations.filter(({ operation }) => operation.tags.includes(group));
    return `<section aria-labelledby="group-${group}">
<h2 id="group-${group}">${group}</h2>
${ofGroup.map(operationHtml).join("\n")}
</section>`;
  })
  .join("\n")}
<section aria-labelledby="schemas">
<h2 id="schemas">schemas</h2>
${Object.entries(components.schemas).map(schemaHtml).join("\n")}
</section>
</main>
</body>
</html>
`;
}

interface ShownRoute {
  readonly path: string;
  readonly method: string;
  readonly operation: ShownOperation;
}

function operationHtml({ path, method, operation }: ShownRoute): string {
  const { operationId, summary, requestBody, responses } = operation;
  const body =
    requestBody &&
    `<h3>Body${requestBody.required ? "" : ", optional"}</h3>\n<p>${contentHtml(requestBody.content)}</p>\n`;
  const answers = Object.entries(responses).map(
    ([status, { description, content }]) =>
      `<tr><th scope="row">${html(status)}</th><td>${html(description)}</td><td>${contentHtml(content)}</td></tr>`,
  );
  return `<details id="${operationId}">
<summary><b>${method.toUpperCase()}</b> <code>${html(path)}</code> <span>${html(summary)}</span></summary>
${body ?? ""}<h3>Answers</h3>
<table><thead><tr><th scope="col">status</th><th scope="col">meaning</th><th scope="col">body</th></tr></thead><tbody>
${answers.join("\n")}
</tbody></table>
</details>`;
}

function contentHtml(content: ShownContent = {}): string {
  const types = Object.entries(content).map(([type, { schema }]) =>
    schema === undefined ? `<code>${html(type)}</code>` : `${typeHtml(schema)} as <code>${html(type)}</code>`,
  );
  return types.length === 0 ? "none" : types.join(", or ");
}

function schemaHtml([name, schema]: readonly [string, ShownSchema]): string {
  const { properties = {}, description = "", required = [] } = schema.items ?? schema;
  const rows = Object.entries(properties).map(([property, type]) => {
    const about = `${required.includes(property) ? "required. " : ""}${type.description ?? ""}`;
    return `<tr><th scope="row"><code>${html(property)}</code></th><td>${typeHtml(type)}</td><td>${html(about)}</td></tr>`;
  });
  const table =
    rows.length === 0
      ? ""
      : `<table><thead><tr><th scope="col">member</th><th scope="col">type</th><th scope="col">meaning</th></tr></thead><tbody>
${rows.join("\n")}
</tbody></table>
`;
  return `<h3 id="schema-${name}">${name}</h3>
<p>${typeHtml({ ...schema, properties: {} })}. ${html(description)}</p>
${table}`;
}

const REFERENCE = "#/components/schemas/";

/** A type in one line. Types without a name of their own list their members. */
function typeHtml(schema: ShownSchema): string {
  const { $ref, type, format, items, properties = {}, additionalProperties } = schema;
  if ($ref !== undefined) {
    const name = html($ref.slice(REFERENCE.length));
    return `<a href="#schema-${name}">${name}</a>`;
  }
  if (type === "array") return items === undefined ? "array" : `array of ${typeHtml(items)}`;
  if (schema.enum !== undefined) return schema.enum.map((one) => `<code>${html(one)}</code>`).join(" ");
  const members = Object.entries(properties).map(
    ([name, one]) => `<code>${html(name)}</code>: ${typeHtml(one)}`,
  );
  if (members.length > 0) return `object { ${members.join(", ")} }`;
  if (typeof additionalProperties === "object")
    return `object with values: ${typeHtml(additionalProperties)}`;
  const name = html([type ?? "any"].flat().join(" or "));
  return format === undefined ? name : `${name} (${html(format)})`;
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function html(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character]!);
}
