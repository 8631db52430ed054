import type { Scenario } from "../../support/scheduler/scenario.js";
import { type ExecutionDraft, OutcomeDraft, type ScenarioDifference } from "./outcome-draft.js";

/** A batch that waited while the instance was busy, and the next one, whose request arrived before it started. */
function missedJoins(draft: OutcomeDraft): [ExecutionDraft, ExecutionDraft][] {
  const { executions } = draft.outcome;
  const { maxBatchSize = 0 } = draft.config(draft.scenario.id);
  const size = ({ requests }: ExecutionDraft) =>
    requests.reduce((sum, request) => sum + draft.rows(request, draft.scenario.id), 0);
  return executions.flatMap((first, i): [ExecutionDraft, ExecutionDraft][] => {
    const second = executions[i + 1];
    const waited = i > 0 && first.requests.every(({ id }) => sentAt(draft, id) < draft.start(first) - 100);
    const isThere = second?.requests.every(({ id }) => sentAt(draft, id) < draft.start(first) - 100);
    return second !== undefined && waited && isThere && size(first) + size(second) <= maxBatchSize
      ? [[first, second]]
      : [];
  });
}

function sentAt(draft: OutcomeDraft, id: string): number {
  return draft.action(id)?.at_ms ?? 0;
}

function isPlainBatching({ config_pbtxt: text, extra_models: others, env, outcome }: Scenario): boolean {
  return (
    outcome.executions !== undefined &&
    others === undefined &&
    Object.keys(env).length === 0 &&
    /max_queue_delay_microseconds:\s*[1-9]/.test(text) &&
    /dynamic_batching/.test(text) &&
    !/priority_levels|queue_policy|sequence_batching|response_cache/.test(text)
  );
}

const joinsWaitingBatch: ScenarioDifference = {
  rule: "joins-waiting-batch",
  applies(scenario) {
    if (!isPlainBatching(scenario)) return false;
    const draft = new OutcomeDraft(scenario);
    return draft.isSerial && missedJoins(draft).length > 0;
  },
  amend(scenario) {
    const draft = new OutcomeDraft(scenario);
    for (let [pair] = missedJoins(draft); pair !== undefined; [pair] = missedJoins(draft)) {
      draft.join(...pair);
      draft.settleTimes(draft.outcome.executions.indexOf(pair[0]) + 1);
    }
    draft.retell();
    for (const execution of draft.outcome.executions) {
      for (const { id } of execution.requests) draft.arriveAt(id, draft.end(execution));
    }
  },
};

/** Requests whose own timeout passed in a queue without a timeout that allows overriding. */
function overridden(draft: OutcomeDraft): ExecutionDraft[] {
  const policy = draft.config(draft.scenario.id).dynamicBatching?.defaultQueuePolicy;
  if (policy?.allowTimeoutOverride !== true || Number(policy.defaultTimeoutMicroseconds ?? 0) > 0) return [];
  return draft.outcome.executions.filter(({ requests, about_ms: start }) =>
    requests.some(({ id }) => sentAt(draft, id) + (draft.action(id)?.timeout_us ?? Infinity) / 1000 < start),
  );
}

const timeoutWithoutDefault: ScenarioDifference = {
  rule: "timeout-without-default",
  applies: (scenario) =>
    scenario.outcome.executions !== undefined && overridden(new OutcomeDraft(scenario)).length > 0,
  amend(scenario) {
    const draft = new OutcomeDraft(scenario);
    for (const execution of overridden(draft)) {
      for (const request of [...execution.requests]) {
        const expiry = sentAt(draft, request.id) + (draft.action(request.id)?.timeout_us ?? Infinity) / 1000;
        const response = draft.response(request.id);
        if (expiry >= draft.start(execution) || response === undefined) continue;
        delete response.outputs;
        Object.assign(response, { ok: false, code: "UNAVAILABLE", message: "Request timeout expired" });
        draft.bookAsFailed(scenario.id, draft.rows(request, scenario.id));
        draft.dropFrom(execution, request.id);
        draft.arriveAt(request.id, expiry);
      }
    }
    draft.settleTimes();
    draft.retell();
  },
};

/**
 * Two executions of which the first ran a late request although one in time waited too: the recorded server checked
 * again only when that one was late as well.
 */
function latePair(draft: OutcomeDraft): [ExecutionDraft, ExecutionDraft] | undefined {
  const policy = draft.config(draft.scenario.id).dynamicBatching?.defaultQueuePolicy;
  if (policy?.timeoutAction !== "DELAY" || !draft.isSerial) return undefined;
  const limit = Number(policy.defaultTimeoutMicroseconds) / 1000;
  let free = 0;
  for (const [i, late] of draft.outcome.executions.entries()) {
    const timely = draft.outcome.executions[i + 1];
    const waits = timely !== undefined && draft.sent(timely) < free && free - draft.sent(timely) <= limit;
    if (waits && free - draft.sent(late) > limit) return [late, timely];
    free = Math.max(free, draft.sent(late)) + draft.duration(late);
  }
  return undefined;
}

const timelyBeforeLate: ScenarioDifference = {
  rule: "timely-before-late",
  applies: (scenario) =>
    scenario.outcome.executions !== undefined && latePair(new OutcomeDraft(scenario)) !== undefined,
  amend(scenario) {
    const draft = new OutcomeDraft(scenario);
    const { executions } = draft.outcome;
    const [late, timely] = latePair(draft) as [ExecutionDraft, ExecutionDraft];
    const at = executions.indexOf(late);
    executions.splice(at, 2, timely, late);
    draft.settleTimes(at);
    draft.retell();
    for (const execution of executions) {
      for (const { id } of execution.requests) draft.arriveAt(id, draft.end(execution));
    }
  },
};

/** Rules about the queue of a dynamic batcher. */
export const batchRules: readonly ScenarioDifference[] = [
  joinsWaitingBatch,
  timeoutWithoutDefault,
  timelyBeforeLate,
];
