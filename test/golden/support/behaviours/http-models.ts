import { type ErrorCode, type Parameters as RequestParameters, TritonError } from "@tritonjs/core";
import type { ParameterValue } from "@tritonjs/protocol";
import { type Behaviour, identity, type ModelRequest, type ModelResult } from "./behaviour.js";
import { sequenceBehaviours } from "./sequence-models.js";
import {
  elements,
  firstNumber,
  firstText,
  int32,
  mapInt32,
  strings,
  tensor,
  text,
  zipInt32,
} from "./tensors.js";

/**
 * The parameters last seen by a model that returns its parameters. Callbacks have no response parameters, so
 * recorded response parameters are compared with these.
 */
export const echoed: { parameters: RequestParameters } = { parameters: {} };

/** The models of `http/models.json` that are not plain identities. */
export const httpBehaviours: Readonly<Record<string, Behaviour>> = {
  ...sequenceBehaviours,
  simple: ({ inputs: { INPUT0, INPUT1 } }) => ({
    OUTPUT0: zipInt32(INPUT0, INPUT1, (a, b) => a + b),
    OUTPUT1: zipInt32(INPUT0, INPUT1, (a, b) => a - b),
  }),
  stat_a: refuseNegative,
  stat_b: refuseNegative,
  optional: ({ inputs: { INPUT0, INPUT1 } }) => {
    if (INPUT0 === undefined) return new TritonError("INVALID_ARG", "INPUT0 missing");
    if (INPUT1 === undefined) return { OUTPUT0: mapInt32(INPUT0, (value) => value + 100) };
    return { OUTPUT0: zipInt32(INPUT0, INPUT1, (a, b) => a + b) };
  },
  optional_all: ({ inputs: { INPUT0, INPUT1 } }) => ({
    OUTPUT0: int32([firstNumber(INPUT0, 1000) + firstNumber(INPUT1, 1000)]),
  }),
  params_echo: (request, model) => {
    echoed.parameters = request.parameters;
    return identity(request, model);
  },
  params_seen: (request) => ({ OUTPUT0: strings([describeRequest(request)]) }),
  classify: ({ inputs: { INPUT0 } }) => {
    const scores = elements(INPUT0) as Float32Array;
    const shape = INPUT0?.shape ?? [];
    return {
      PROB: tensor(scores, shape),
      SCORE: int32([...scores].map((s) => Math.fround(s * 10)).map(Math.trunc), shape),
    };
  },
  special: () => ({
    F32: tensor(
      Float32Array.of(Number.NaN, Infinity, -Infinity, -0, 3.4028234663852886e38, 1.401298464324817e-45, 0.1),
      [7],
    ),
    F64: tensor(
      Float64Array.of(Number.NaN, Infinity, -Infinity, -0, Number.MAX_VALUE, Number.MIN_VALUE, 0.1),
      [7],
    ),
  }),
  llm: mockText,
  llm_batch: mockText,
  zero: ({ inputs: { N } }) => {
    const counts = Array.from({ length: firstNumber(N) }, (_, i) => i);
    return { NUMS: int32(counts), STRS: strings(counts.map((i) => `s${i}`)) };
  },
  scalar: ({ inputs: { INPUT0 } }) => ({ OUTPUT0: mapInt32(INPUT0, (value) => value * 2) }),
  fail: ({ inputs: { MODE } }) => failAs(firstText(MODE)),
  slow_queue: waitMilliseconds,
  slow_timeout: waitMilliseconds,
  multi: timesVersion,
  latest: timesVersion,
  ex_a: timesVersion,
  ex_b: timesVersion,
};

const timesVersionOf = (version: number) => (value: number) => value * version;

function timesVersion(...[{ inputs }, { version }]: Parameters<Behaviour>): ModelResult {
  return { OUTPUT0: mapInt32(inputs.INPUT0, timesVersionOf(version)) };
}

async function waitMilliseconds(...[{ inputs }, model]: Parameters<Behaviour>): Promise<ModelResult> {
  await model.sleep(firstNumber(inputs.MS));
  return { OUTPUT0: mapInt32(inputs.MS, (ms) => ms) };
}

function refuseNegative({ inputs: { INPUT0 } }: ModelRequest): ModelResult {
  if ((elements(INPUT0) as Int32Array).some((value) => value < 0))
    return new TritonError("INTERNAL", "negative");
  return { OUTPUT0: mapInt32(INPUT0, (value) => value) };
}

/** Keeps the first words of each text, without the stop words. */
function mockText({ inputs, parameters }: ModelRequest): ModelResult {
  echoed.parameters = parameters;
  const { text_input: input, max_tokens: limit, stop } = inputs;
  if (input === undefined) return new TritonError("INVALID_ARG", "text_input missing");
  const dropped = new Set(stop === undefined ? [] : (elements(stop) as Uint8Array[]).map(text));
  const texts = (elements(input) as Uint8Array[]).map(text);
  if (texts.includes("FAIL")) return new TritonError("UNAVAILABLE", "model says no");
  const kept = texts.map((line) => {
    const words = line.split(" ").slice(0, limit === undefined ? undefined : firstNumber(limit));
    return words.filter((word) => !dropped.has(word)).join(" ");
  });
  return { text_output: strings(kept, input.shape) };
}

function failAs(mode: string): ModelResult {
  switch (mode) {
    case "raise":
      throw new Error("boom");
    case "default":
      return new TritonError("INTERNAL", "plain failure");
    case "empty":
      return new TritonError("INTERNAL", "");
    case "quote":
      return new TritonError("INTERNAL", 'a "quoted" \\ back\nline\ttab é € </x>');
    case "none":
      return {};
    case "dtype":
      return { OUTPUT0: int32([1]) };
    case "name":
      return { OTHER: strings(["x"]) };
    case "shape":
      return { OUTPUT0: strings(["x", "y"]) };
    default:
      return new TritonError(mode as ErrorCode, `code ${mode}`);
  }
}

/** The text that `params_seen` returns for a request. */
function describeRequest(request: ModelRequest): string {
  const { parameters, id, correlationId, queueTimeoutMicroseconds } = request;
  const keys = Object.keys(parameters).sort();
  const seen = keys.map((key) => `${key}=${describeParameter(parameters[key] as ParameterValue)}`);
  const flags = (request.sequenceStart ? 1 : 0) | (request.sequenceEnd ? 2 : 0);
  const correlation =
    typeof correlationId === "string" ? JSON.stringify(correlationId) : String(correlationId ?? 0);
  return [
    ...seen,
    `id=${id}`,
    `corr=${correlation}`,
    `flags=${flags}`,
    `timeout=${queueTimeoutMicroseconds ?? 0}`,
  ].join(";");
}

function describeParameter(value: ParameterValue): string {
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "number" || Number.isInteger(value)) return JSON.stringify(value);
  const bits = Buffer.alloc(8);
  bits.writeDoubleBE(value);
  return JSON.stringify(`double:${bits.toString("hex")}`);
}
