import type { PlainJson } from "../../json/write-json.js";

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
const datatype = {
  type: "string",
  enum: [
    ...["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64"],
    ...["FP16", "BF16", "FP32", "FP64", "BYTES"],
  ],
};
const tensorMetadata = object({ name: text, datatype, shape }, ["name", "datatype", "shape"]);

/** Schemas of the bodies of requests and answers, by name. */
export const schemas: { readonly [name: string]: PlainJson } = {
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
