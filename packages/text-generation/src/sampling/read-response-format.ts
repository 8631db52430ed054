import { hasMoreLevels, MOST_LEVELS } from "@tritonjs/protocol";
import { invalidParameter, type ParameterFields } from "./parameter-fields.js";
import type { ResponseFormat } from "./sampling-parameters.js";

type Fields = Readonly<Record<string, unknown>>;

const FORMATS = "an object with type 'text', 'json_object' or 'json_schema'";

/** Parameters of vLLM that describe a text, by their names in `structured_outputs`. */
const READERS: Readonly<Record<string, (name: string, value: unknown) => ResponseFormat | undefined>> = {
  json: (name, value) => ofSchema(name, value),
  json_object: (_, value) => (value === true ? { type: "json_object" } : undefined),
  regex: (name, value) => ({ type: "regex", pattern: textOf(name, value) }),
  choice: (name, value) => ({ type: "choice", texts: textsOf(name, value) }),
  grammar: (name, value) => ({ type: "grammar", grammar: textOf(name, value) }),
};

/**
 * Reads which structure the text must have: `response_format` of OpenAI, or vLLM's `structured_outputs`,
 * `guided_decoding`, `guided_json`, `guided_regex`, `guided_choice` and `guided_grammar`. Undefined if the request asks
 * for none.
 *
 * @throws TritonError INVALID_ARG for unknown forms, and for more than one structure
 */
export function readResponseFormat(fields: ParameterFields): ResponseFormat | undefined {
  const given = fields.raw("response_format");
  const nested = fields.raw("structured_outputs", "guided_decoding");
  if (nested !== undefined && !isObject(nested.value)) {
    throw invalidParameter(nested.name, "an object", nested.value);
  }
  const formats = [
    given === undefined ? undefined : ofOpenAi(given.value),
    ...Object.entries(READERS).flatMap(([key, read]) => {
      const inside = (nested?.value as Fields | undefined)?.[key] ?? undefined;
      const guided = fields.raw(`guided_${key}`);
      return [
        inside === undefined ? undefined : read(`${nested!.name}.${key}`, inside),
        guided === undefined ? undefined : read(guided.name, guided.value),
      ];
    }),
  ].filter((format) => format !== undefined);
  if (formats.length <= 1) return formats[0];
  const types = formats.map(({ type }) => type);
  throw invalidParameter("response_format", "one structure of the text", types, types.join(" and "));
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
      const format = ofSchema("response_format.json_schema.schema", described.schema ?? {});
      return described.strict === false ? { ...format, strict: false } : format;
    }
    default:
      throw invalidParameter("response_format", FORMATS, value);
  }
}

function ofSchema(name: string, value: unknown): Extract<ResponseFormat, { type: "json_schema" }> {
  let schema = value;
  if (typeof value === "string") {
    try {
      schema = JSON.parse(value);
    } catch {
      throw invalidParameter(name, "a JSON schema", value);
    }
  }
  if (!isObject(schema)) throw invalidParameter(name, "a JSON schema", value);
  if (hasMoreLevels(schema, MOST_LEVELS)) {
    throw invalidParameter(name, `a JSON schema of at most ${MOST_LEVELS} levels`, schema, "more");
  }
  return { type: "json_schema", schema };
}

function textOf(name: string, value: unknown): string {
  if (typeof value === "string" && value !== "") return value;
  throw invalidParameter(name, "a string that is not empty", value);
}

function textsOf(name: string, value: unknown): readonly string[] {
  if (Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === "string")) return value;
  throw invalidParameter(name, "a list of at least one string", value);
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
