import {
  definedMembers,
  errorFor,
  hasMoreLevels,
  MOST_LEVELS,
  type Parameters,
  type TritonError,
} from "@tritonjs/protocol";

/** Largest number of strings that may end a text. Each one is searched for after each token. */
const MAX_STOP_STRINGS = 16;

const MAX_STOP_LENGTH = 1024;

const MAX_LOGPROBS = 20;

/** Largest number of texts that must not be generated. Each one is searched for after each token. */
const MAX_BAD_WORDS = 64;

/** Where a request has its sampling parameters. */
interface SamplingSource {
  /** Text of the tensor `sampling_parameters`. */
  readonly json?: string | undefined;
  /** Parameters of the request, which are read if there is no such tensor. */
  readonly parameters?: Parameters | undefined;
}

/**
 * Reads the sampling parameters of a request: the JSON object of the tensor `sampling_parameters` or, without it, the
 * request's parameters of the same names. Their names are those of OpenAI and vLLM, such as `max_tokens`. Other fields
 * are ignored, and so are fields with null. A request parameter may also hold the JSON of its value as a string.
 *
 * @throws TritonError INVALID_ARG that names the field, the expected and the given value
 * @example
 * ```ts
 * readSamplingParameters({ json: '{ "max_tokens": 16, "stop": "." }' }); // { maxTokens: 16, stop: ["."] }
 * ```
 */
export function readSamplingParameters(source: SamplingSource): SamplingParameters {
  return samplingParametersOf(new ParameterFields(source));
}

/** Like {@link readSamplingParameters}. */
export function samplingParametersOf(fields: ParameterFields): SamplingParameters {
  refuseUnsupported(fields);
  return definedMembers({
    maxTokens: fields.integer(["max_tokens", "max_completion_tokens"], { min: 0 }),
    minTokens: fields.integer(["min_tokens"], { min: 0 }),
    temperature: fields.number("temperature", { min: 0, max: 100 }),
    topP: fields.number("top_p", { above: 0, max: 1 }),
    topK: topK(fields),
    minP: fields.number("min_p", { min: 0, max: 1 }),
    repetitionPenalty: fields.number("repetition_penalty", { above: 0 }),
    presencePenalty: fields.number("presence_penalty", { min: -2, max: 2 }),
    frequencyPenalty: fields.number("frequency_penalty", { min: -2, max: 2 }),
    seed: fields.integer(["seed"], {}),
    stop: stopStrings(fields),
    stopTokenIds: tokenIds(fields, "stop_token_ids", 0),
    includeStopStrInOutput: fields.boolean("include_stop_str_in_output"),
    ignoreEos: fields.boolean("ignore_eos"),
    skipSpecialTokens: fields.boolean("skip_special_tokens"),
    logitBias: logitBias(fields),
    allowedTokenIds: tokenIds(fields, "allowed_token_ids", 1),
    badWords: badWords(fields),
    logprobs: logprobs(fields),
    promptLogprobs: fields.integer(["prompt_logprobs"], { min: 0, max: MAX_LOGPROBS }),
    responseFormat: readResponseFormat(fields),
  });
}

function parseObject(json: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw notAnObject(`text that is not JSON (${(error as Error).message})`, error);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw notAnObject(value === null ? "null" : Array.isArray(value) ? "a list" : `a ${typeof value}`);
  }
  return value as Readonly<Record<string, unknown>>;
}

function notAnObject(got: string, cause?: unknown): TritonError {
  return errorFor("INVALID_INPUT", `input 'sampling_parameters': expected a JSON object, got ${got}`, {
    cause,
  });
}

/** Refuses parameters of vLLM that would change the text and have no counterpart here. */
function refuseUnsupported(fields: ParameterFields): void {
  for (const name of ["n", "best_of"]) {
    const value = fields.raw(name)?.value;
    if (value !== undefined && value !== 1) {
      const expected = "1, because a request gets one text: send one request for each text";
      throw invalidParameter(name, expected, value);
    }
  }
  if (fields.boolean("use_beam_search") === true) {
    throw invalidParameter("use_beam_search", "false, because beam search is not supported", true);
  }
  const cut = fields.raw("truncate_prompt_tokens")?.value;
  if (cut !== undefined) {
    throw invalidParameter("truncate_prompt_tokens", "no value, because prompts are not cut", cut);
  }
}

/** `-1` and `0` take all tokens, as in vLLM. */
function topK(fields: ParameterFields): number | undefined {
  const value = fields.integer(["top_k"], { min: -1 });
  return value === -1 ? 0 : value;
}

function stopStrings(fields: ParameterFields): readonly string[] | undefined {
  const { name, value } = fields.raw("stop", "stop_words") ?? { name: "stop", value: "" };
  const list = givenTexts(value);
  const expected = `a string or at most ${MAX_STOP_STRINGS} strings of 1 to ${MAX_STOP_LENGTH} characters`;
  if (list.length > MAX_STOP_STRINGS) throw invalidParameter(name, expected, list, `${list.length} strings`);
  for (const one of list) {
    if (typeof one !== "string") throw invalidParameter(name, expected, one);
    if (one.length > MAX_STOP_LENGTH) {
      throw invalidParameter(name, expected, one, `a string of ${one.length} characters`);
    }
  }
  return list.length === 0 ? undefined : (list as readonly string[]);
}

/** A list of texts, or one text. Empty texts are none: clients of TensorRT-LLM send `"stop_words": ""`. */
function givenTexts(value: unknown): readonly unknown[] {
  return (Array.isArray(value) ? value : [value]).filter((one) => one !== "");
}

function tokenIds(fields: ParameterFields, name: string, least: number): readonly number[] | undefined {
  const expected = least === 0 ? "a list of token numbers" : "a list of at least one token number";
  const isTokens = (value: unknown): value is number[] =>
    Array.isArray(value) && value.length >= least && value.every(isTokenId);
  return fields.value([name], expected, isTokens);
}

function badWords(fields: ParameterFields): readonly string[] | undefined {
  const value = fields.raw("bad_words")?.value ?? "";
  const words = givenTexts(value);
  const isWord = (one: unknown) =>
    typeof one === "string" && one.trim() !== "" && one.length <= MAX_STOP_LENGTH;
  if (words.length > MAX_BAD_WORDS || !words.every(isWord)) {
    const expected = `a string or at most ${MAX_BAD_WORDS} strings of 1 to ${MAX_STOP_LENGTH} characters`;
    throw invalidParameter("bad_words", expected, value);
  }
  return words.length === 0 ? undefined : (words as readonly string[]);
}

function logitBias(fields: ParameterFields): Readonly<Record<number, number>> | undefined {
  const expected = "an object from token numbers to numbers from -100 to 100";
  const value = fields.value(["logit_bias"], expected, isObject);
  for (const [id, bias] of Object.entries(value ?? {})) {
    const valid = /^\d+$/.test(id) && typeof bias === "number" && Math.abs(bias) <= 100;
    if (!valid) throw invalidParameter("logit_bias", expected, { [id]: bias });
  }
  return value as Readonly<Record<number, number>> | undefined;
}

/** `logprobs` is a number as in vLLM and completions, or true with `top_logprobs` as in chat completions. */
function logprobs(fields: ParameterFields): number | undefined {
  const value = fields.raw("logprobs")?.value;
  if (value === false) return undefined;
  const top = fields.integer(["top_logprobs"], { min: 0, max: MAX_LOGPROBS });
  if (value === true) return top ?? 0;
  return fields.integer(["logprobs"], { min: 0, max: MAX_LOGPROBS });
}

function isTokenId(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Form that the text must have, for structured output. */
export type ResponseFormat =
  | { readonly type: "text" }
  | { readonly type: "json_object" }
  /** `strict: false` allows properties that the schema does not name. */
  | { readonly type: "json_schema"; readonly schema: unknown; readonly strict?: false }
  /** Formats of vLLM: a regular expression, one of several texts, a grammar in EBNF. */
  | { readonly type: "regex"; readonly pattern: string }
  | { readonly type: "choice"; readonly texts: readonly string[] }
  | { readonly type: "grammar"; readonly grammar: string };

/**
 * How a request wants its text: the parameters of OpenAI and vLLM, in camelCase. A parameter that the request does not
 * set is absent, so that a model can have defaults of its own.
 */
export interface SamplingParameters {
  /** Largest number of tokens to generate; 0 for none, which only computes the prompt. */
  readonly maxTokens?: number;
  /** Tokens to generate before the text may end, at least 0. */
  readonly minTokens?: number;
  /** 0 always takes the most likely token. Higher values, at most 100, make rare tokens more likely. */
  readonly temperature?: number;
  /** Takes one of the most likely tokens whose probabilities add up to this, above 0 and at most 1. */
  readonly topP?: number;
  /** Takes one of this number of most likely tokens; 0 for all tokens. */
  readonly topK?: number;
  /** Leaves out tokens below this share of the highest probability, 0 to 1. */
  readonly minP?: number;
  /** Divides the scores of tokens of the prompt and the text, above 0; 1 has no effect. */
  readonly repetitionPenalty?: number;
  /** Lowers the scores of tokens that are in the text, -2 to 2. */
  readonly presencePenalty?: number;
  /** Lowers the scores of tokens by how often they are in the text, -2 to 2. */
  readonly frequencyPenalty?: number;
  /** Same seed, same text. An integer. */
  readonly seed?: number;
  /** Strings that end the text: at most 16, none of them empty. */
  readonly stop?: readonly string[];
  /** Numbers of tokens that end the text. */
  readonly stopTokenIds?: readonly number[];
  /** True if the text ends with the string that ended it. */
  readonly includeStopStrInOutput?: boolean;
  /** True if the model's end token does not end the text. */
  readonly ignoreEos?: boolean;
  /** False if the text shows the model's special tokens. */
  readonly skipSpecialTokens?: boolean;
  /** Scores to add by the number of the token, -100 to 100. */
  readonly logitBias?: Readonly<Record<number, number>>;
  /** Numbers of the only tokens that may be chosen: at least one. */
  readonly allowedTokenIds?: readonly number[];
  /** Texts that must not be generated: at most 64, none of them empty. */
  readonly badWords?: readonly string[];
  /** Number of most likely tokens to report for each token of the text, 0 to 20. */
  readonly logprobs?: number;
  /** Number of most likely tokens to report for each token of the prompt, 0 to 20. Decoders have it alone. */
  readonly promptLogprobs?: number;
  /** Form that the text must have. @default any text */
  readonly responseFormat?: ResponseFormat;
}

type Fields = Readonly<Record<string, unknown>>;

const FORMATS = "an object with type 'text', 'json_object' or 'json_schema'";

/** Parameters of vLLM that describe a text, by their names in `structured_outputs`. */
const READERS: Readonly<Record<string, (name: string, value: unknown) => ResponseFormat | undefined>> = {
  json: (name, value) => ofSchema(name, value),
  json_object: (_, value) => (value === true ? { type: "json_object" } : undefined),
  regex: (name, value) => ({ type: "regex", pattern: grammarText(name, value) }),
  choice: (name, value) => ({ type: "choice", texts: choiceTexts(name, value) }),
  grammar: (name, value) => ({ type: "grammar", grammar: grammarText(name, value) }),
};

/**
 * Reads which structure the text must have: `response_format` of OpenAI, or vLLM's `structured_outputs`,
 * `guided_decoding`, `guided_json`, `guided_regex`, `guided_choice` and `guided_grammar`. Undefined if the request asks
 * for none.
 *
 * @throws TritonError INVALID_ARG for unknown forms, and for more than one structure
 */
function readResponseFormat(fields: ParameterFields): ResponseFormat | undefined {
  const given = fields.raw("response_format");
  const nested = nestedFormat(fields);
  const formats = [
    given === undefined ? undefined : ofOpenAi(given.value),
    ...Object.entries(READERS).flatMap(([key, read]) => {
      const inside = nested?.value[key] ?? undefined;
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

/** vLLM's Triton backend takes these fields as a string with JSON, and vLLM itself as an object. */
function nestedFormat(
  fields: ParameterFields,
): { readonly name: string; readonly value: Fields } | undefined {
  const nested = fields.raw("structured_outputs", "guided_decoding");
  if (nested === undefined) return undefined;
  let value: unknown = nested.value;
  if (typeof value === "string") {
    try {
      value = JSON.parse(value);
    } catch {
      // The text is refused as it is.
    }
  }
  if (isObject(value)) return { name: nested.name, value };
  throw invalidParameter(nested.name, "an object or its JSON", nested.value);
}

function ofOpenAi(value: unknown): ResponseFormat {
  if (!isObject(value)) throw invalidParameter("response_format", FORMATS, value);
  switch (value.type) {
    case "text":
      return { type: value.type };
    case "json_object": {
      // llama.cpp and Together have the schema beside the type.
      const { schema } = value;
      const isAny = isObject(schema) && Object.keys(schema).length === 0;
      return (schema ?? null) === null || isAny
        ? { type: value.type }
        : ofSchema("response_format.schema", schema);
    }
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

function grammarText(name: string, value: unknown): string {
  if (typeof value === "string" && value !== "") return value;
  throw invalidParameter(name, "a string that is not empty", value);
}

function choiceTexts(name: string, value: unknown): readonly string[] {
  if (Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === "string")) return value;
  throw invalidParameter(name, "a list of at least one string", value);
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

interface Bounds {
  readonly min?: number;
  readonly max?: number;
  /** Numbers must be greater than this. */
  readonly above?: number;
}

/** Reads typed fields, and names the field in each error. Absent and null fields are undefined. */
export class ParameterFields {
  readonly #values: Readonly<Record<string, unknown>>;
  /** True for request parameters, which cannot hold fractions or lists: a string with their JSON is taken too. */
  readonly #hasTexts: boolean;

  constructor({ json, parameters = {} }: SamplingSource) {
    this.#hasTexts = json === undefined;
    this.#values = json === undefined ? parameters : parseObject(json);
  }

  /** The value of the first of the names that has one. */
  raw(...names: readonly string[]): { readonly name: string; readonly value: unknown } | undefined {
    for (const name of names) {
      const value = Object.hasOwn(this.#values, name) ? this.#values[name] : undefined;
      if (value !== undefined && value !== null) return { name, value: this.#parsed(value) };
    }
    return undefined;
  }

  /** The value of the first of the names that has one. */
  value<T>(
    names: readonly string[],
    expected: string,
    isValid: (value: unknown) => value is T,
  ): T | undefined {
    const found = this.raw(...names);
    if (found === undefined || isValid(found.value)) return found?.value as T | undefined;
    throw invalidParameter(found.name, expected, found.value);
  }

  number(name: string, bounds: Bounds): number | undefined {
    return this.value([name], `a number${boundsText(bounds)}`, (value) => fits(value, bounds));
  }

  integer(names: readonly string[], bounds: Bounds): number | undefined {
    const isInteger = (value: unknown): value is number => Number.isSafeInteger(value) && fits(value, bounds);
    return this.value(names, `an integer${boundsText(bounds)}`, isInteger);
  }

  boolean(name: string): boolean | undefined {
    return this.value([name], "true or false", (value) => typeof value === "boolean");
  }

  #parsed(value: unknown): unknown {
    if (typeof value === "bigint") {
      const number = Number(value);
      return Number.isSafeInteger(number) ? number : value;
    }
    if (!this.#hasTexts || typeof value !== "string") return value;
    try {
      const parsed: unknown = JSON.parse(value);
      return typeof parsed === "string" ? value : (parsed ?? value);
    } catch {
      return value;
    }
  }
}

/**
 * The error for a parameter that does not hold the expected value.
 *
 * @param shown text for `got`
 */
export function invalidParameter(
  name: string,
  expected: string,
  got: unknown,
  shown: string = shownValue(got),
): TritonError {
  return errorFor("INVALID_INPUT", `sampling parameter '${name}': expected ${expected}, got ${shown}`);
}

function fits(
  value: unknown,
  { min = -Infinity, max = Infinity, above = -Infinity }: Bounds,
): value is number {
  if (typeof value !== "number" || !Number.isFinite(value)) return false;
  return value >= min && value <= max && value > above;
}

function boundsText({ min, max, above }: Bounds): string {
  if (min !== undefined && max !== undefined) return ` from ${min} to ${max}`;
  if (above !== undefined) return ` above ${above}${max === undefined ? "" : ` and at most ${max}`}`;
  if (min !== undefined) return ` of at least ${min}`;
  return max === undefined ? "" : ` of at most ${max}`;
}

function shownValue(value: unknown): string {
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 80)}...` : text;
}
