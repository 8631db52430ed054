import type { Outcome, Scenario } from "../../support/scheduler/scenario.js";
import { type ExecutionDraft, OutcomeDraft, type ScenarioDifference } from "./outcome-draft.js";

/** True for the scenarios in which the only model has a cache that works. */
function isCached({
  config_pbtxt: text,
  server_flags: flags,
  extra_models: others,
  outcome,
}: Scenario): boolean {
  return (
    outcome.executions !== undefined &&
    others === undefined &&
    /response_cache\s*{\s*enable:\s*true/.test(text) &&
    flags.some((flag) => flag.startsWith("--cache-config="))
  );
}

type Key = "ours" | "recorded";

/**
 * Properties that requests must share to share an answer. The recorded server compared only the bytes of the inputs.
 */
function keyOf({ actions }: Pick<Scenario, "actions">, id: string, key: Key): string {
  const {
    in: inputs = {},
    parameters = {},
    outputs = [],
  } = actions.find((action) => action.do === "infer" && action.id === id) as Scenario["actions"][number];
  const tensors = Object.entries(inputs).sort(([a], [b]) => (a < b ? -1 : 1));
  if (key === "recorded") return JSON.stringify(tensors.map(([name, { data }]) => [name, data]));
  return JSON.stringify([tensors, Object.entries(parameters).sort(), [...outputs].sort()]);
}

function sent({ actions }: Pick<Scenario, "actions">): string[] {
  return actions.filter((action) => action.do === "infer").map(({ id }) => id);
}

/** Pairs of requests, in the order of sending, that the recorded server treated as equal. */
function pairs(scenario: Scenario, isMeant: (first: string, second: string) => boolean): boolean {
  const ids = sent(scenario);
  return ids.some((second, i) =>
    ids
      .slice(0, i)
      .some(
        (first) =>
          keyOf(scenario, first, "recorded") === keyOf(scenario, second, "recorded") &&
          isMeant(first, second),
      ),
  );
}

/**
 * Shapes, data types, parameters and requested outputs are part of the key, and only answers are kept. This decides
 * which requests run; their times are copied from the outcome.
 */
const cacheKey: ScenarioDifference = {
  rule: "cache-key",
  applies: (scenario) =>
    isCached(scenario) && pairs(scenario, (first, second) => isWrongHit(scenario, first, second)),
  amend: (draft, got) => judge(draft as Scenario, new OutcomeDraft(draft), got as Outcome),
};

/** A request that got the answer to another one, or a cached result of a failed one. */
function isWrongHit(scenario: Scenario, first: string, second: string): boolean {
  if (keyOf(scenario, first, "ours") !== keyOf(scenario, second, "ours")) return true;
  const failed = scenario.outcome.responses.some(({ id, ok }) => id === first && !ok);
  return failed && !runs(scenario, second);
}

/** Of equal requests in flight only the first runs. */
const cacheInFlight: ScenarioDifference = {
  rule: "cache-in-flight",
  applies: (scenario) =>
    isCached(scenario) &&
    pairs(
      scenario,
      (first, second) =>
        keyOf(scenario, first, "ours") === keyOf(scenario, second, "ours") &&
        runs(scenario, first) &&
        runs(scenario, second),
    ),
  amend: (draft, got) => judge(draft as Scenario, new OutcomeDraft(draft), got as Outcome),
};

function runs({ outcome }: Scenario, id: string): boolean {
  return outcome.executions.some(({ requests }) => requests.some((request) => request.id === id));
}

/** Checks that exactly the requests without a cached answer ran, and sets the counts accordingly. */
function judge(scenario: Scenario, draft: OutcomeDraft, got: Outcome): void {
  const ran = (id: string) => got.executions.some(({ requests }) => requests.some((one) => one.id === id));
  const answer = (id: string) => got.responses.find((response) => response.id === id);
  const leaders = new Map<string, string>();
  for (const id of sent(scenario)) {
    const key = keyOf(scenario, id, "ours");
    const leader = leaders.get(key);
    if ((leader === undefined) !== ran(id)) {
      throw new Error(`request ${id}: ${ran(id) ? "ran although its answer is kept" : "did not run"}`);
    }
    const response = draft.response(id) as Record<string, unknown>;
    const given = answer(leader ?? id);
    if (given?.ok) {
      leaders.set(key, leader ?? id);
      for (const field of ["code", "message"]) delete response[field];
      Object.assign(response, { ok: true, outputs: structuredClone(given.outputs) });
    } else failAsTold(draft, id, response);
  }
  takeExecutions(draft, got.executions as ExecutionDraft[]);
  count(draft);
}

/** Only an effect that the request asked for may have failed it. */
function failAsTold(draft: OutcomeDraft, id: string, response: Record<string, unknown>): void {
  const { parameters = {} } = draft.action(id) as Scenario["actions"][number];
  if (response.ok !== true) return;
  if (parameters.fail !== undefined) {
    const code = parameters.code ?? "INTERNAL";
    delete response.outputs;
    Object.assign(response, { ok: false, code, message: `failed on request ${id}` });
    return;
  }
  if (parameters.omit === undefined) throw new Error(`request ${id} failed`);
  const outputs = (draft.config(draft.scenario.id).output ?? []).map(({ name }) => name);
  const lacking = String(parameters.omit).split(",");
  const given = outputs.filter((name) => !lacking.includes(name)).map((name) => `'${name}'`);
  const text = `model '${draft.scenario.id}' did not return output '${lacking[0]}': got [${given.join(", ")}]`;
  delete response.outputs;
  delete response.parameters;
  Object.assign(response, { ok: false, code: "INTERNAL", message: text });
}

/** Executions that were not recorded are placed at their time in the outcome, each with its requests as sent. */
function takeExecutions(draft: OutcomeDraft, executions: readonly ExecutionDraft[]): void {
  const recorded = new Map(draft.outcome.executions.map((execution) => [namesOf(execution), execution]));
  draft.outcome.executions = executions.map((execution) => recorded.get(namesOf(execution)) ?? execution);
  for (const { requests } of draft.outcome.executions) {
    for (const request of requests) {
      const { in: inputs = {} } = draft.action(request.id) as Scenario["actions"][number];
      request.in = Object.fromEntries(
        Object.entries(inputs).map(([name, { shape, data }]) => [name, [[...shape], [...data].slice(0, 16)]]),
      ) as typeof request.in;
    }
  }
  const order = draft.outcome.arrival_order;
  if (typeof order === "string") return;
  for (const id of sent(draft.scenario as Scenario)) {
    const isRecorded = [...recorded.values()].some(({ requests }) => requests.some((one) => one.id === id));
    const execution = draft.outcome.executions.find(({ requests }) => requests.some((one) => one.id === id));
    const isNew = execution !== undefined && !isRecorded;
    const isGone = execution === undefined && isRecorded;
    if (isNew && !isGivenUp(draft, id)) draft.arriveAt(id, draft.end(execution));
    if (isGone) arriveWithLeader(draft, id);
  }
}

function arriveWithLeader(draft: OutcomeDraft, id: string): void {
  const scenario = draft.scenario as Scenario;
  const key = keyOf(scenario, id, "ours");
  const leader = sent(scenario).find((other) => keyOf(scenario, other, "ours") === key) as string;
  const execution = draft.outcome.executions.find(({ requests }) =>
    requests.some((one) => one.id === leader),
  );
  const sentAt = draft.action(id)?.at_ms ?? 0;
  draft.arriveAt(id, Math.max(sentAt, draft.end(execution as ExecutionDraft)));
}

function isGivenUp(draft: OutcomeDraft, id: string): boolean {
  return draft.scenario.actions.some((action) => action.do === "cancel" && action.id === id);
}

function namesOf({ requests }: ExecutionDraft): string {
  return requests.map(({ id }) => id).join();
}

/** All counts follow from which requests ran and which were answered. */
function count(draft: OutcomeDraft): void {
  const model = draft.scenario.id;
  const { executions, responses } = draft.outcome;
  const run = executions.flatMap(({ requests }) => requests);
  const served = run.filter(({ id }) => draft.response(id)?.ok);
  const ok = responses.filter((response) => response.ok).length;
  const misses = run.filter(({ id }) => draft.response(id)?.ok || isGivenUp(draft, id)).length;
  const sizes = executions.map(({ requests }) =>
    requests.reduce((sum, one) => sum + draft.rows(one, model), 0),
  );
  Object.assign(draft.statistics(model), {
    inference_count: served.reduce((sum, request) => sum + draft.rows(request, model), 0),
    execution_count: executions.length,
    success: ok,
    fail: run.length - served.length,
    queue: ok,
    compute_input: served.length,
    compute_infer: served.length,
    compute_output: served.length,
    cache_hit: ok - served.length,
    cache_miss: misses,
    batch_stats: [...new Set(sizes)]
      .sort((a, b) => a - b)
      .map((size) => ({ batch_size: size, compute_infer: sizes.filter((other) => other === size).length })),
  });
}

/** Requests without an answer, because the cache left a gap in the order. */
const cacheKeepsOrder: ScenarioDifference = {
  rule: "cache-keeps-order",
  applies: (scenario) => isCached(scenario) && hung(scenario).length > 0,
  amend(scenario) {
    const draft = new OutcomeDraft(scenario);
    for (const id of hung(scenario as Scenario)) {
      const execution = draft.outcome.executions.find(({ requests }) =>
        requests.some((one) => one.id === id),
      );
      const request = execution?.requests.find((one) => one.id === id);
      const response = draft.response(id);
      if (execution === undefined || request === undefined || response === undefined) continue;
      const shape = [draft.rows(request, scenario.id), 4];
      const data = Array.from({ length: 4 * shape[0]! }, () => 0);
      delete response.code;
      delete response.message;
      Object.assign(response, { ok: true, outputs: { OUT: { datatype: "INT32", shape, data } } });
      draft.arriveAt(id, draft.end(execution));
    }
    draft.retell();
  },
};

function hung({ outcome }: Scenario): readonly string[] {
  return (outcome as { readonly hung?: readonly string[] }).hung ?? [];
}

/** Rules about the response cache. */
export const cacheRules: readonly ScenarioDifference[] = [cacheKey, cacheInFlight, cacheKeepsOrder];
