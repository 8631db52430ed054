import { isDeepStrictEqual } from "node:util";
import { show } from "../compare-values.js";
import { compareIndex } from "./compare-index.js";
import type { CallStep, IndexRow } from "./scenario.js";

/** The recorded identity backend adds four example parameters to every response. */
const EXAMPLE_PARAMETER = /^param[0-3]$/;

/** An answer of the server: the status, and the body as JSON or text. */
export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Lists how an answer differs from the recorded one. */
export function compareAnswer(
  step: CallStep,
  { status, body }: Answer,
  log: readonly string[] = [],
): string[] {
  const { call, response, response_part: part } = step;
  const differences =
    status === step.status ? [] : [`${call}: expected status ${step.status}, got ${status}`];
  const wrong = (expected: unknown, got: unknown) => `${call}: expected ${show(expected)}, got ${show(got)}`;
  if (call.endsWith("/index") && Array.isArray(response)) {
    return [...differences, ...compareIndex(response as IndexRow[], body as IndexRow[], log)];
  }
  const got = arranged(call, body);
  if (response !== undefined && !isDeepStrictEqual(arranged(call, response), got)) {
    differences.push(wrong(response, body));
  }
  for (const [name, value] of Object.entries((part ?? {}) as object)) {
    const member = (body as Record<string, unknown>)[name];
    if (!isDeepStrictEqual(value, member)) differences.push(`${name} of ${wrong(value, member)}`);
  }
  return differences;
}

/**
 * The parts that both sides have: the recording keeps parts of some answers, and the recorded backend adds example
 * parameters.
 */
function arranged(call: string, body: unknown): unknown {
  if (typeof body !== "object" || body === null) return body;
  if (call.endsWith("/stats")) {
    const list = Array.isArray(body) ? body : (body as { model_stats?: unknown[] }).model_stats;
    return Array.isArray(list) ? list.map(countsOf) : body;
  }
  if (/^GET \/v2\/models\/[^/]+$/.test(call) && "versions" in body) return { versions: body.versions };
  if ("outputs" in body && "parameters" in body) {
    const { parameters, ...rest } = body;
    const own = Object.entries(parameters as object).filter(([name]) => !EXAMPLE_PARAMETER.test(name));
    return own.length === 0 ? rest : { ...rest, parameters: Object.fromEntries(own) };
  }
  if ("error" in body) {
    return {
      error: String(body.error)
        .replace(/\n\nAt:\n[\s\S]*?(?=;\n|$)/, "")
        .replace(/\n(?=;)/, ""),
    };
  }
  return body;
}

function countsOf(model: unknown) {
  const { name, version, inference_count, execution_count } = model as Record<string, unknown>;
  return { name, version, inference_count, execution_count };
}
