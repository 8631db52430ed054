import type { ExecutionRecord } from "../behaviours/recorder.js";
import { compareValues } from "../compare-values.js";
import { type JsonValue, toJsonValue } from "../json-value.js";
import type { Outcome, ResponseRecord, Scenario } from "./scenario.js";

/** Times in the recordings are medians of a few runs on a busy machine. */
const TIME_TOLERANCE_MS = 60;

/** Tells how an outcome differs from the recorded one. */
export function compareOutcome(scenario: Scenario, got: Outcome): string[] {
  const expected = scenario.outcome;
  return [
    ...compareExecutions(scenario, got.executions),
    ...compare("responses", expected.responses.map(shownResponse), got.responses.map(shownResponse)),
    ...compare("arrival_order", expected.arrival_order.map(sorted), got.arrival_order),
    ...compare("statistics", expected.statistics, got.statistics),
  ];
}

function compare(what: string, expected: unknown, got: unknown): string[] {
  return compareValues(toJsonValue(expected), toJsonValue(got), what);
}

function compareExecutions(scenario: Scenario, got: readonly ExecutionRecord[]): string[] {
  const { executions: expected } = scenario.outcome;
  if (scenario.unordered_executions) {
    return compare("executions", texts(expected), texts(got));
  }
  const batches = compare("executions", expected.map(shownExecution), got.map(shownExecution));
  const times = expected.flatMap(({ about_ms: at }, i) => {
    const other = got[i]?.about_ms ?? Number.NaN;
    return Math.abs(other - at) <= TIME_TOLERANCE_MS
      ? []
      : [`executions[${i}]: expected at ${at} ms, got ${other} ms`];
  });
  return batches.length > 0 ? batches : times;
}

function shownExecution({ requests }: ExecutionRecord): unknown {
  return requests.map(({ id, in: inputs, parameters }) => ({ id, in: inputs, parameters: parameters ?? {} }));
}

function texts(executions: readonly ExecutionRecord[]): string[] {
  return executions.map((execution) => canonical(toJsonValue(shownExecution(execution)))).sort();
}

function canonical(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!(value instanceof Map)) return String(value);
  const members = [...value].map(([key, entry]) => `${key}:${canonical(entry)}`);
  return `{${members.sort().join(",")}}`;
}

/** An exception's text is that of the recorded backend, with the place in its code. */
function shownResponse({ id, ok, outputs, code, message }: ResponseRecord): unknown {
  const text = message?.includes("model raised") ? "model raised" : message;
  return ok ? { id, outputs } : { id, code, message: text };
}

function sorted(group: readonly string[]): string[] {
  return [...group].sort();
}
