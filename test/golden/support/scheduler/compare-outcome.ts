import type { ExecutionRecord } from "../behaviours/recorder.js";
import { compareValues } from "../compare-values.js";
import { type JsonValue, toJsonValue } from "../json-value.js";
import { levelNames } from "../level-names.js";
import type { Outcome, ResponseRecord, Scenario } from "./scenario.js";

/** Times in the recordings are medians of a few runs on a busy machine. */
const TIME_TOLERANCE_MS = 60;

/** With these in its configuration the recorded batcher noticed an idle instance only when it polled. */
const POLLING = /priority_levels|queue_policy/;
const POLL_MS = 500;

/** The recorded identity backend adds four example parameters to every response. */
const EXAMPLE_PARAMETER = /^param[0-3]$/;

/** Lists how an outcome differs from the recorded one. */
export function compareOutcome(scenario: Scenario, got: Outcome): string[] {
  const expected = scenario.outcome;
  if (expected.executions_by_instance !== undefined) return compareCounts(expected, got);
  return [
    ...compare(
      "load_executions",
      (expected.load_executions ?? []).map(shownExecution),
      (got.load_executions ?? []).map(shownExecution),
    ),
    ...compareExecutions(scenario, got.executions),
    ...compare(
      "responses",
      shownResponses(scenario, expected.responses),
      shownResponses(scenario, got.responses),
    ),
    ...compareArrivals(expected.arrival_order, got.arrival_order),
    ...compare("statistics", expected.statistics, got.statistics),
  ];
}

/** Which instance took which request is not certain: the number of runs of each is, and that all were answered. */
function compareCounts(expected: Outcome, got: Outcome): string[] {
  const answered = ({ responses }: Outcome) => responses.map(({ id, ok }) => `${id}: ${ok}`).sort();
  return [
    ...compare("executions_by_instance", expected.executions_by_instance, got.executions_by_instance),
    ...compare("responses", answered(expected), answered(got)),
    ...compare("statistics", expected.statistics, got.statistics),
  ];
}

/** Lists how the rejection of a model differs from the recorded one; without a recorded one the model must load. */
export function compareRefusal({ id, outcome }: Scenario, refusal: string | undefined): string[] {
  const told = outcome.load_error_detail ?? outcome.load_error;
  const reason = told
    ?.replace(/^load failed for model '[^']*': (version \d+ is at UNAVAILABLE state: [\w ]+: )?/, "")
    .replace(/;?\s*$/, "");
  const got = refusal?.replace(`cannot bind model '${id}':\n- `, "");
  return reason === got ? [] : [`expected ${reason ?? "a model that loads"}, got ${refusal ?? "one"}`];
}

function compare(what: string, expected: unknown, got: unknown): string[] {
  return compareValues(toJsonValue(expected), toJsonValue(got), what);
}

function compareArrivals(expected: Outcome["arrival_order"], got: Outcome["arrival_order"]): string[] {
  return typeof expected === "string" ? [] : compare("arrival_order", expected.map(sorted), got);
}

function compareExecutions(scenario: Scenario, got: readonly ExecutionRecord[]): string[] {
  const { executions: expected } = scenario.outcome;
  const texts = [scenario.config_pbtxt, ...Object.values(scenario.extra_models ?? {})];
  if (scenario.unordered_executions) {
    return compare("executions", sortedTexts(expected), sortedTexts(got));
  }
  const batches = compare("executions", expected.map(shownExecution), got.map(shownExecution));
  const times = expected.flatMap(({ about_ms: at }, i) => {
    const other = got[i]?.about_ms ?? Number.NaN;
    const early = texts.some((text) => POLLING.test(text)) ? POLL_MS : 0;
    return other - at <= TIME_TOLERANCE_MS && at - other <= TIME_TOLERANCE_MS + early
      ? []
      : [`executions[${i}]: expected at ${at} ms, got ${other} ms`];
  });
  return batches.length > 0 ? batches : times;
}

function shownExecution({ model, requests }: ExecutionRecord): unknown {
  const shown = requests.map(({ id, in: inputs, parameters, corrid, flags, null: isNull }) => ({
    id,
    in: inputs,
    parameters: parameters ?? {},
    sequence: { corrid: corrid ?? 0, flags: flags ?? 0, null: isNull ?? false },
  }));
  return model === undefined ? shown : { model, requests: shown };
}

function sortedTexts(executions: readonly ExecutionRecord[]): string[] {
  return executions.map((execution) => canonical(toJsonValue(shownExecution(execution)))).sort();
}

function canonical(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!(value instanceof Map)) return String(value);
  const members = [...value].map(([key, entry]) => `${key}:${canonical(entry)}`);
  return `{${members.sort().join(",")}}`;
}

/** Answers by request. The instance that took a request is not compared, so neither is its count of executions. */
function shownResponses(
  { unordered_executions: racing }: Scenario,
  responses: readonly ResponseRecord[],
): unknown {
  const shown = responses.map((response) => {
    const { OUT, ...others } = response.outputs ?? {};
    if (!racing || OUT === undefined) return shownResponse(response);
    const data = OUT.data.map((value, i) => (i % 4 === 0 ? 0 : value));
    return shownResponse({ ...response, outputs: { ...others, OUT: { ...OUT, data } } });
  });
  return shown.sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

/** An exception's text is that of the recorded backend, with the place in its code. */
function shownResponse({ id, ok, outputs, parameters, code, message }: ResponseRecord): {
  readonly id: string;
} {
  const text = message?.includes("model raised") ? "model raised" : message && levelNames(message);
  const shown = Object.entries(parameters ?? {}).filter(([name]) => !EXAMPLE_PARAMETER.test(name));
  return ok
    ? { id, ...{ outputs, parameters: Object.fromEntries(shown) } }
    : { id, ...{ code: code ?? "not told", message: text } };
}

function sorted(group: readonly string[]): string[] {
  return [...group].sort();
}
