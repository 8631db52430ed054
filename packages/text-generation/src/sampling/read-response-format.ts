import { invalidParameter, type ParameterFields } from "./parameter-fields.js";
import type { ResponseFormat } from "./sampling-parameters.js";

const FORMATS = "an object with type 'text', 'json_object' or 'json_schema'";

/** Parameters of vLLM for structured output other than JSON. */
const OTHER_FORMATS = [
  "guided_regex",
  "guided_choice",
  "guided_grammar",
  "regex",
  "choice",
  "grammar",
  "structural_tag",
];

/**
 * Reads which structure the text must have: `response_format` of OpenAI, or `guided_json`, `guided_decoding` and
 * `structured_outputs` of vLLM. Undefined if the request asks for none.
 *
 * @throws TritonError INVALID_ARG for formats that are not JSON, and for a schema that is not an object
 */
export function readResponseFormat(fields: ParameterFields): ResponseFormat | undefined {
  refuseOthers(fields.raw.bind(fields));
  const found = fields.raw("response_format");
  if (found !== undefined) return ofOpenAi(found.value);
  const guided = fields.raw("guided_json");
  if (guided !== undefined) return ofSchema(guided.name, guided.value);
  const structured = fields.raw("structured_outputs", "guided_decoding");
  if (structured === undefined) return undefined;
  const { name, value } = structured;
  if (!isObject(value)) throw invalidParameter(name, "an object", value);
  refuseOthers((key) => (Object.hasOwn(value, key) ? { value: value[key] ?? undefined } : undefined), name);
  if (value.json !== undefined && value.json !== null) return ofSchema(`${name}.json`, value.json);
  return value.json_object === true ? { type: "json_object" } : undefined;
}

function refuseOthers(
  find: (name: string) => { readonly value: unknown } | undefined,
  parent?: string,
): void {
  for (const name of OTHER_FORMATS) {
    const value = find(name)?.value;
    if (value === undefined) continue;
    const path = parent === undefined ? name : `${parent}.${name}`;
    throw invalidParameter(path, "no value, because only JSON is supported for structured output", value);
  }
}

function ofOpenAi(value: unknown): ResponseFormat {
  if (!isObject(value)) throw invalidParameter("response_format", FORMATS, value);
  switch (value.type) {
    case "text":
    case "json_object":
      return { type: value.type };
    case "json_schema": {
      const { json_schema: described } = value;
      if (!isObject(described)) {
        throw invalidParameter("response_format.json_schema", "an object with a schema", described);
      }
      return ofSchema("response_format.json_schema.schema", described.schema ?? {});
    }
    default:
      throw invalidParameter("response_format", FORMATS, value);
  }
}

function ofSchema(name: string, value: unknown): ResponseFormat {
  let schema = value;
  if (typeof value === "string") {
    try {
      schema = JSON.parse(value);
    } catch {
      throw invalidParameter(name, "a JSON schema", value);
    }
  }
  if (!isObject(schema)) throw invalidParameter(name, "a JSON schema", value);
  return { type: "json_schema", schema };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
