import { definedMembers, type Parameters, TritonError } from "@tritonjs/protocol";
import { invalidParameter, ParameterFields } from "./parameter-fields.js";
import { readResponseFormat } from "./read-response-format.js";
import type { SamplingParameters } from "./sampling-parameters.js";

/** Largest number of strings that may end a text. Each one is searched for after each token. */
const MAX_STOP_STRINGS = 16;

const MAX_STOP_LENGTH = 1024;

const MAX_LOGPROBS = 20;

/** Largest number of texts that must not be generated. Each one is searched for after each token. */
const MAX_BAD_WORDS = 64;

/** Where a request has its sampling parameters. */
export interface SamplingSource {
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
  return samplingParametersOf(openFields(source));
}

/** The fields of a request, from which its sampling parameters are read. */
export function openFields({ json, parameters = {} }: SamplingSource): ParameterFields {
  return new ParameterFields(
    json === undefined
      ? { values: parameters, textValues: true }
      : { values: parseObject(json), textValues: false },
  );
}

/** Like {@link readSamplingParameters}. */
export function samplingParametersOf(fields: ParameterFields): SamplingParameters {
  refuseUnsupported(fields);
  return definedMembers({
    maxTokens: fields.integer(["max_tokens", "max_completion_tokens"], { min: 1 }),
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
  return new TritonError("INVALID_ARG", `input 'sampling_parameters': expected a JSON object, got ${got}`, {
    reason: "INVALID_INPUT",
    cause,
  });
}

/** Refuses parameters of vLLM that would change the text and have no counterpart here. */
function refuseUnsupported(fields: ParameterFields): void {
  for (const name of ["n", "best_of"]) {
    const value = fields.raw(name)?.value;
    if (value !== undefined && value !== 1) {
      throw invalidParameter(
        name,
        "1, because a request gets one text: send one request for each text",
        value,
      );
    }
  }
  if (fields.boolean("use_beam_search") === true) {
    throw invalidParameter("use_beam_search", "false, because beam search is not supported", true);
  }
  const prompt = fields.raw("prompt_logprobs")?.value;
  if (prompt !== undefined) throw invalidParameter("prompt_logprobs", "no value", prompt);
}

/** `-1` and `0` take all tokens, as in vLLM. */
function topK(fields: ParameterFields): number | undefined {
  const value = fields.integer(["top_k"], { min: -1 });
  return value === -1 ? 0 : value;
}

function stopStrings(fields: ParameterFields): readonly string[] | undefined {
  const value = fields.raw("stop")?.value;
  if (value === undefined) return undefined;
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  const expected = `a string or at most ${MAX_STOP_STRINGS} strings of 1 to ${MAX_STOP_LENGTH} characters`;
  if (list.length > MAX_STOP_STRINGS)
    throw invalidParameter("stop", expected, list, `${list.length} strings`);
  for (const one of list) {
    if (typeof one !== "string" || one.length === 0 || one.length > MAX_STOP_LENGTH) {
      throw typeof one === "string"
        ? invalidParameter("stop", expected, one, `a string of ${one.length} characters`)
        : invalidParameter("stop", expected, one);
    }
  }
  return list as readonly string[];
}

function tokenIds(fields: ParameterFields, name: string, least: number): readonly number[] | undefined {
  const value = fields.raw(name)?.value;
  if (value === undefined) return undefined;
  if (!Array.isArray(value) || value.length < least || !value.every(isTokenId)) {
    const expected = least === 0 ? "a list of token numbers" : "a list of at least one token number";
    throw invalidParameter(name, expected, value);
  }
  return value;
}

function badWords(fields: ParameterFields): readonly string[] | undefined {
  const value = fields.raw("bad_words")?.value;
  if (value === undefined) return undefined;
  const isWords = Array.isArray(value) && value.length <= MAX_BAD_WORDS && value.every(isBadWord);
  if (isWords) return value;
  const expected = `at most ${MAX_BAD_WORDS} strings of 1 to ${MAX_STOP_LENGTH} characters`;
  throw invalidParameter("bad_words", expected, value);
}

function isBadWord(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "" && value.length <= MAX_STOP_LENGTH;
}

function logitBias(fields: ParameterFields): Readonly<Record<number, number>> | undefined {
  const value = fields.raw("logit_bias")?.value;
  if (value === undefined) return undefined;
  const expected = "an object from token numbers to numbers from -100 to 100";
  if (typeof value !== "object" || Array.isArray(value))
    throw invalidParameter("logit_bias", expected, value);
  for (const [id, bias] of Object.entries(value as object)) {
    const valid = /^\d+$/.test(id) && typeof bias === "number" && Math.abs(bias) <= 100;
    if (!valid) throw invalidParameter("logit_bias", expected, { [id]: bias });
  }
  return value as Readonly<Record<number, number>>;
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
