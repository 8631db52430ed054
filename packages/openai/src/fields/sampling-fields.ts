import { definedMembers } from "@tritonjs/protocol";
import { invalidField, wrongType } from "../errors/openai-error.js";
import { type Fields, isIntegers, objectFields } from "./fields.js";

/** Settings of the sampling with the field names of OpenAI and vLLM, as models get them in `sampling_parameters`. */
export type Sampling = Record<string, unknown>;

/** Largest `max_tokens`: models take it as an INT32. */
export const MOST_TOKENS = 2 ** 31 - 1;
/** Largest number of stop strings in a request. OpenAI takes 4. Each one is searched for in every piece of text. */
const MOST_STOPS = 16;

/**
 * Reads the sampling fields that chats and completions share: OpenAI's fields and vLLM's additions. A field that the
 * request does not have is left to the model's own default.
 */
export function readSampling(fields: Fields): Sampling {
  const sampling: Sampling = {
    temperature: fields.number("temperature", 0, 2),
    top_p: fields.number("top_p", 0, 1),
    frequency_penalty: fields.number("frequency_penalty", -2, 2),
    presence_penalty: fields.number("presence_penalty", -2, 2),
    seed: fields.integer("seed", Number.MIN_SAFE_INTEGER),
    stop: readStop(fields),
    logit_bias: readLogitBias(fields),
    top_k: fields.integer("top_k", -1, MOST_TOKENS),
    min_p: fields.number("min_p", 0, 1),
    repetition_penalty: fields.number("repetition_penalty", 0, 1000),
    length_penalty: fields.number("length_penalty", -1000, 1000),
    min_tokens: fields.integer("min_tokens", 0, MOST_TOKENS),
    ignore_eos: fields.boolean("ignore_eos"),
    include_stop_str_in_output: fields.boolean("include_stop_str_in_output"),
    skip_special_tokens: fields.boolean("skip_special_tokens"),
    spaces_between_special_tokens: fields.boolean("spaces_between_special_tokens"),
    truncate_prompt_tokens: fields.integer("truncate_prompt_tokens", -1, MOST_TOKENS),
    stop_token_ids: readTokens(fields, "stop_token_ids"),
    allowed_token_ids: readTokens(fields, "allowed_token_ids"),
    bad_words: readStrings(fields, "bad_words"),
    guided_json: fields.any("guided_json"),
    guided_regex: fields.string("guided_regex"),
    guided_choice: readStrings(fields, "guided_choice"),
    guided_grammar: fields.string("guided_grammar"),
    response_format: readResponseFormat(fields),
  };
  return definedMembers(sampling);
}

function readStop(fields: Fields): string[] | undefined {
  const value = fields.any("stop");
  if (value === undefined) return undefined;
  const stops = Array.isArray(value) ? value : [value];
  if (stops.length > MOST_STOPS) {
    throw invalidField(
      "stop",
      `'stop': expected at most ${MOST_STOPS} strings, got ${stops.length}`,
      "array_above_max_length",
    );
  }
  for (const stop of stops) {
    if (typeof stop !== "string") throw wrongType("stop", "a string or an array of strings", stop);
    if (stop === "") throw invalidField("stop", "'stop': expected strings that are not empty");
  }
  return stops.length === 0 ? undefined : stops;
}

function readTokens(fields: Fields, name: string): readonly number[] | undefined {
  const tokens = fields.array(name);
  if (tokens === undefined || isIntegers(tokens)) return tokens;
  throw wrongType(fields.path(name), "an array of tokens", tokens);
}

function readStrings(fields: Fields, name: string): readonly unknown[] | undefined {
  const texts = fields.array(name);
  if (texts === undefined || texts.every((text) => typeof text === "string")) return texts;
  throw wrongType(fields.path(name), "an array of strings", texts);
}

function readLogitBias(fields: Fields): unknown {
  const given = fields.any("logit_bias");
  if (given === undefined) return undefined;
  objectFields(given, "logit_bias");
  const entries = Object.entries(given as object);
  for (const [token, bias] of entries) {
    const isToken = /^\d+$/.test(token);
    if (isToken && typeof bias === "number" && Math.abs(bias) <= 100) continue;
    throw invalidField("logit_bias", "'logit_bias': expected numbers from -100 to 100 by token");
  }
  return entries.length === 0 ? undefined : given;
}

/** The format, or undefined for plain text. */
function readResponseFormat(fields: Fields): unknown {
  const format = fields.object("response_format");
  if (format === undefined) return undefined;
  const type = format.choice("type", ["text", "json_object", "json_schema"]);
  if (type === undefined) {
    throw invalidField(
      "response_format.type",
      "'response_format.type': expected text, json_object or json_schema",
    );
  }
  if (type === "text") return undefined;
  if (type === "json_object") return { type };
  const schema = format.object("json_schema");
  if (schema === undefined || schema.object("schema") === undefined) {
    const path = "response_format.json_schema.schema";
    throw invalidField(path, `'${path}': expected a JSON schema, got none`, "missing_required_parameter");
  }
  schema.string("name");
  return fields.any("response_format");
}
