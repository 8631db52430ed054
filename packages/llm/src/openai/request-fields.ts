import { definedMembers, hasMoreLevels, MOST_LEVELS } from "@tritonjs/protocol";
import type { Log } from "@tritonjs/server";
import type { Parts } from "../turns.js";
import { checkLength, invalidField, missingField, shown, wrongType } from "./openai-error.js";

/** The fields of a JSON object, read with checks. `null` counts as absent, as OpenAI's clients send it. */
export class Fields {
  readonly #path: string;
  readonly #read = new Set<string>();

  /** @param path path of the object in the request, for errors; empty for the request itself */
  constructor(
    private readonly values: Readonly<Record<string, unknown>>,
    path = "",
  ) {
    this.#path = path;
  }

  path(name: string): string {
    return this.#path === "" ? name : `${this.#path}.${name}`;
  }

  any(name: string): unknown {
    this.#read.add(name);
    return Object.hasOwn(this.values, name) ? (this.values[name] ?? undefined) : undefined;
  }

  string(name: string): string | undefined {
    const value = this.any(name);
    if (value === undefined || typeof value === "string") return value;
    throw wrongType(this.path(name), "a string", value);
  }

  requiredString(name: string): string {
    const value = this.string(name);
    if (value === undefined || value === "")
      throw missingField(this.path(name), "a string that is not empty");
    return value;
  }

  boolean(name: string): boolean | undefined {
    const value = this.any(name);
    if (value === undefined || typeof value === "boolean") return value;
    throw wrongType(this.path(name), "a boolean", value);
  }

  number(name: string, least: number, most: number): number | undefined {
    return this.#within(name, "a number", least, most, () => true);
  }

  integer(name: string, least: number, most = Number.MAX_SAFE_INTEGER): number | undefined {
    return this.#within(name, "an integer", least, most, Number.isInteger);
  }

  #within(
    name: string,
    kind: string,
    least: number,
    most: number,
    isKind: (value: number) => boolean,
  ): number | undefined {
    const value = this.any(name);
    if (value === undefined) return undefined;
    const path = this.path(name);
    if (typeof value !== "number") throw wrongType(path, kind, value);
    if (isKind(value) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    throw invalidField(path, `'${path}': expected ${kind} ${range}, got ${value}`);
  }

  choice<const W extends string>(name: string, words: readonly W[]): W | undefined {
    const value = this.any(name);
    if (value === undefined) return undefined;
    const known = words.find((word) => word === value);
    if (known !== undefined) return known;
    const path = this.path(name);
    throw invalidField(path, `'${path}': expected one of ${words.join(", ")}, got ${shown(value)}`);
  }

  array(name: string): readonly unknown[] | undefined {
    const value = this.any(name);
    if (value === undefined || Array.isArray(value)) return value;
    throw wrongType(this.path(name), "an array", value);
  }

  object(name: string): Fields | undefined {
    const value = this.any(name);
    return value === undefined ? undefined : objectFields(value, this.path(name));
  }

  requiredObject(name: string): Fields {
    return objectFields(this.any(name), this.path(name));
  }

  unread(): string[] {
    return Object.keys(this.values).filter((name) => !this.#read.has(name));
  }
}

/** The fields of a value that has to be an object. */
export function objectFields(value: unknown, path: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return new Fields(value as Record<string, unknown>, path);
  }
  throw wrongType(path, "an object", value);
}

/** Checks that all elements are integers, such as tokens. */
export function isIntegers(values: readonly unknown[]): values is readonly number[] {
  return values.every((value) => Number.isSafeInteger(value));
}

/**
 * JSON text of a part of a request. The limit of its nesting is our own: from Node 26 on, `JSON.stringify` writes any
 * depth, while the code that reads the text may be recursive.
 *
 * @throws OpenAiError 400 for more than 100 levels
 */
export function requestJson(value: unknown, path: string): string {
  checkLevels(value, path);
  return JSON.stringify(value);
}

function checkLevels(value: unknown, path: string): void {
  if (!hasMoreLevels(value, MOST_LEVELS)) return;
  throw invalidField(path, `'${path}': expected at most ${MOST_LEVELS} levels of nesting, got more`);
}

/** Characters of a string that are written between two pauses. */
const CHARACTERS_OF_PART = 16 * 1024;

/** Writes {@link requestJson} in parts. */
export function* requestJsonInParts(value: unknown, path: string): Parts<string> {
  checkLevels(value, path);
  return yield* jsonInParts(value);
}

function* jsonInParts(value: unknown): Parts<string> {
  if (typeof value === "string" && value.length > CHARACTERS_OF_PART) {
    let text = "";
    for (let at = 0; at < value.length; at += CHARACTERS_OF_PART) {
      // A character that is cut in two becomes two escapes, which stand for it together.
      text += JSON.stringify(value.slice(at, at + CHARACTERS_OF_PART)).slice(1, -1);
      yield;
    }
    return `"${text}"`;
  }
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const isList = Array.isArray(value);
  let text = "";
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const separator = text === "" ? "" : ",";
    text += separator + (isList ? "" : `${JSON.stringify(name)}:`) + (yield* jsonInParts(member));
    yield;
  }
  return isList ? `[${text}]` : `{${text}}`;
}

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
  const sampling: Sampling = definedMembers({
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
    bad_words: readTexts(fields, "bad_words"),
    ...readGuides(fields, "guided_"),
    response_format: readResponseFormat(fields),
  });
  const outputs = fields.object("structured_outputs");
  return outputs === undefined ? sampling : { ...sampling, ...readStructuredOutputs(outputs, sampling) };
}

/** vLLM's fields for the structure of the text. */
function readGuides(fields: Fields, prefix: "" | "guided_"): Sampling {
  return {
    guided_json: fields.any(`${prefix}json`),
    guided_regex: fields.string(`${prefix}regex`),
    guided_choice: readStrings(fields, `${prefix}choice`),
    guided_grammar: fields.string(`${prefix}grammar`),
  };
}

/** The object in which later releases of vLLM take these fields. */
function readStructuredOutputs(outputs: Fields, sampling: Sampling): Sampling {
  const guides = definedMembers(readGuides(outputs, ""));
  if (outputs.boolean("json_object") === true) guides.response_format = { type: "json_object" };
  if (Object.keys(guides).length === 1 && !isStructured(sampling)) return guides;
  const text =
    "'structured_outputs': expected one of json, regex, choice, grammar and json_object, and no structure beside it";
  throw invalidField("structured_outputs", text);
}

/** True if the text must have a structure. */
export function isStructured(sampling: Sampling): boolean {
  return Object.keys(sampling).some((name) => /^(response_format|guided_)/.test(name));
}

/** One text or several. Empty texts are none, as clients of TensorRT-LLM send them. */
function readTexts(fields: Fields, name: string): string[] | undefined {
  const value = fields.any(name);
  if (value === undefined) return undefined;
  const given: readonly unknown[] = Array.isArray(value) ? value : [value];
  const texts = given.filter((text): text is string => {
    if (typeof text !== "string") throw wrongType(name, "a string or an array of strings", text);
    return text !== "";
  });
  return texts.length === 0 ? undefined : texts;
}

function readStop(fields: Fields): string[] | undefined {
  const stops = readTexts(fields, "stop");
  if (stops !== undefined) checkLength("stop", stops, MOST_STOPS, "strings");
  return stops;
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

function readResponseFormat(fields: Fields): unknown {
  const format = fields.object("response_format");
  if (format === undefined) return undefined;
  const type = format.choice("type", ["text", "json_object", "json_schema"]);
  if (type === undefined) {
    const text = "'response_format.type': expected text, json_object or json_schema";
    throw invalidField("response_format.type", text);
  }
  if (type === "text") return undefined;
  if (type === "json_object") return readJsonObject(format);
  const schema = format.object("json_schema");
  if (schema === undefined || schema.object("schema") === undefined) {
    const path = "response_format.json_schema.schema";
    throw invalidField(path, `'${path}': expected a JSON schema, got none`, "missing_required_parameter");
  }
  schema.string("name");
  return fields.any("response_format");
}

/** A format of any object. llama.cpp and Together have a schema beside its type. */
export function readJsonObject(format: Fields): object {
  const type = "json_object";
  return format.object("schema") === undefined ? { type } : { type, schema: format.any("schema") };
}

/**
 * Refuses fields that a request must not have.
 *
 * @param reasons by the name of the field
 * @throws OpenAiError 400 for the first of them
 */
export function refuseFields(fields: Fields, reasons: Readonly<Record<string, string>>): void {
  for (const [name, reason] of Object.entries(reasons)) {
    if (fields.any(name) === undefined) continue;
    throw invalidField(
      name,
      `'${name}': expected none, got ${shown(fields.any(name))}; ${reason}`,
      "unsupported_parameter",
    );
  }
}

/**
 * Reads `n`, the number of choices. `best_of` must be the same number, because choices are not compared.
 *
 * @throws OpenAiError 400 for another `best_of`, rather than answer fewer candidates than were asked for
 */
export function readChoices(fields: Fields, maxChoices: number): number {
  const choices = fields.integer("n", 1, maxChoices) ?? 1;
  const best = fields.integer("best_of", 1, maxChoices) ?? choices;
  if (best === choices) return choices;
  const text = `'best_of': expected the same number as 'n' (${choices}), got ${best}: choices are not compared`;
  throw invalidField("best_of", text, "unsupported_value");
}

/** Whether the answer is streamed, and how. */
export interface StreamOptions {
  readonly stream: boolean;
  /** Whether the last chunk has the numbers of tokens. */
  readonly includeUsage: boolean;
}

export function readStreamOptions(fields: Fields): StreamOptions {
  const stream = fields.boolean("stream") ?? false;
  const options = fields.object("stream_options");
  if (options !== undefined && !stream) {
    throw invalidField("stream_options", "`stream_options` can only be used when `stream` is True");
  }
  return { stream, includeUsage: options?.boolean("include_usage") ?? false };
}

/** Fields of OpenAI's clients that do not concern a model. They are accepted without a warning. */
const WITHOUT_EFFECT = [
  "user",
  "metadata",
  "store",
  "service_tier",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_retention",
] as const;

/** Marks the fields that are accepted without effect as read. */
export function acceptCommonFields(fields: Fields): void {
  for (const name of WITHOUT_EFFECT) fields.any(name);
}

/** Largest number of remembered names, so that a client with ever new names fills neither memory nor log. */
const MOST_NAMES = 1000;
const LONGEST_NAME = 64;

/** Warns of fields without effect, once for each field. */
export class FieldWarnings {
  readonly #known = new Set<string>();

  constructor(private readonly log: Pick<Log, "warning">) {}

  unknown(path: string, field: string): void {
    this.#once(`${path} ${field}`, () => `OpenAI: ${path} ignores the unknown field '${shortened(field)}'`);
  }

  withoutEffect(model: string, field: string): void {
    this.#once(
      `${model} ${field}`,
      () => `OpenAI: '${field}' has no effect for model '${model}', which has no input for it`,
    );
  }

  #once(key: string, text: () => string): void {
    if (this.#known.has(key) || this.#known.size >= MOST_NAMES) return;
    this.#known.add(key);
    this.log.warning(text());
  }
}

/** A name that a client has chosen, without characters that could forge lines of the log. */
function shortened(name: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed.
  const plain = name.replace(/[\u0000-\u001f\u007f]/g, "?");
  return plain.length <= LONGEST_NAME ? plain : `${plain.slice(0, LONGEST_NAME)}...`;
}
