import type { Scenario } from "../../support/scheduler/scenario.js";
import { type ExecutionDraft, OutcomeDraft, type ScenarioDifference } from "./outcome-draft.js";

interface Given {
  readonly id: string;
  /** Time when the client cancelled the request. */
  readonly at: number;
}

function givenUp({ actions, outcome }: Pick<Scenario, "actions" | "outcome">): Given[] {
  const ended = ({ id }: { id: string }) =>
    outcome.responses?.some((response) => response.id === id && response.code === "CANCELLED(client)");
  return actions
    .filter((action) => action.do === "cancel")
    .map(({ id, at_ms: at }) => ({ id, at }))
    .filter((given) => ended(given));
}

function holding(draft: OutcomeDraft, id: string): ExecutionDraft[] {
  return draft.outcome.executions.filter(({ requests }) => requests.some((request) => request.id === id));
}

/** Executions with a request that was cancelled before they started. */
function startedAfter(draft: OutcomeDraft, { id, at }: Given): ExecutionDraft[] {
  return holding(draft, id).filter((execution) => draft.start(execution) >= at);
}

/** Executions that ran when one of their requests was cancelled. */
function runningAt(draft: OutcomeDraft, { id, at }: Given): ExecutionDraft[] {
  return holding(draft, id).filter((execution) => draft.start(execution) < at && draft.end(execution) > at);
}

function isCached(draft: OutcomeDraft): boolean {
  return draft.config(draft.scenario.id).responseCache?.enable === true;
}

function has(scenario: Scenario, find: (draft: OutcomeDraft, given: Given) => ExecutionDraft[]): boolean {
  if (scenario.outcome.executions === undefined) return false;
  const draft = new OutcomeDraft(scenario);
  return !isCached(draft) && givenUp(scenario).some((given) => find(draft, given).length > 0);
}

/** The request leaves the queue; the recorded server ran it all the same. */
const cancelledInQueue: ScenarioDifference = {
  rule: "cancelled-in-queue",
  applies: (scenario) => has(scenario, startedAfter),
  amend(scenario) {
    const draft = new OutcomeDraft(scenario);
    for (const given of givenUp(scenario as Scenario)) {
      for (const execution of startedAfter(draft, given)) {
        const model = draft.modelOf(execution);
        const request = execution.requests.find(({ id }) => id === given.id);
        if (request === undefined) continue;
        const isStep = model !== scenario.id;
        draft.bookAsFailed(model, draft.rows(request, model));
        // A step that never began is not a request of its model.
        if (isStep) draft.statistics(model).fail--;
        endInEnsemble(draft, given, draft.rows(request, scenario.id));
        draft.dropFrom(execution, given.id);
      }
    }
    if (!draft.isSerial) return;
    draft.settleTimes();
    draft.retell();
  },
};

/** The request ends there and counts as failed; the recorded server counted the model's unused answer. */
const cancelledInExecution: ScenarioDifference = {
  rule: "cancelled-in-execution",
  applies: (scenario) => has(scenario, runningAt),
  amend(scenario) {
    const draft = new OutcomeDraft(scenario);
    for (const given of givenUp(scenario as Scenario)) {
      for (const execution of runningAt(draft, given)) {
        const model = draft.modelOf(execution);
        const request = execution.requests.find(({ id }) => id === given.id);
        if (request === undefined) continue;
        draft.bookAsFailed(model, draft.rows(request, model));
        endInEnsemble(draft, given, draft.rows(request, scenario.id));
      }
      release(draft, given);
    }
  },
};

/** A cancelled request of an ensemble counts as failed too. */
function endInEnsemble(draft: OutcomeDraft, { id }: Given, rows: number): void {
  const ensemble = draft.action(id)?.model ?? draft.scenario.id;
  if (!draft.ensembles.includes(ensemble)) return;
  const answered = draft.outcome.responses.filter(({ ok }) => ok).length;
  if (draft.statistics(ensemble).success > answered) draft.bookEnsembleAsFailed(ensemble, rows);
}

/** Answers that the request held back to keep the order are sent when it is cancelled. */
function release(draft: OutcomeDraft, { id, at }: Given): void {
  const { dynamicBatching } = draft.config(draft.scenario.id);
  const sent = draft.action(id)?.at_ms ?? 0;
  if (dynamicBatching?.preserveOrdering !== true) return;
  for (const execution of draft.outcome.executions) {
    for (const request of execution.requests) {
      const later = (draft.action(request.id)?.at_ms ?? 0) > sent;
      if (later && draft.end(execution) < at) arriveWith(draft, request.id, id);
    }
  }
}

/** Puts the arrival of an answer into the group of another. */
function arriveWith(draft: OutcomeDraft, id: string, other: string): void {
  const { arrival_order: order } = draft.outcome;
  if (typeof order === "string") return;
  draft.outcome.arrival_order = order
    .map((group) => {
      const rest = group.filter((member) => member !== id);
      return group.includes(other) ? [...rest, id].sort() : rest;
    })
    .filter((group) => group.length > 0);
}

/** Later requests of its sequence end at once with the reason. */
const cancelledSequence: ScenarioDifference = {
  rule: "cancelled-sequence",
  applies: ({ outcome }) =>
    outcome.responses?.some(({ code, message }) => code === "CANCELLED" && message === "") === true,
  amend(scenario) {
    const draft = new OutcomeDraft(scenario);
    const given = givenUp(scenario as Scenario);
    for (const response of draft.outcome.responses) {
      if (response.code !== "CANCELLED" || response.message !== "") continue;
      response.message = "another request of the same sequence was cancelled, which ended the sequence";
      const sequence = draft.action(response.id)?.sequence?.id;
      const cause = given.find(({ id }) => draft.action(id)?.sequence?.id === sequence);
      if (cause !== undefined) arriveWith(draft, response.id, cause.id);
    }
  },
};

/** Once a step has failed, other running steps of the request are cancelled and count as failed. */
const failedSteps: ScenarioDifference = {
  rule: "ensemble-steps-given-up",
  applies: (scenario) =>
    scenario.outcome.executions !== undefined && givenUpSteps(new OutcomeDraft(scenario)).length > 0,
  amend(scenario) {
    const draft = new OutcomeDraft(scenario);
    for (const { model, rows } of givenUpSteps(draft)) draft.bookAsFailed(model, rows);
  },
};

function givenUpSteps(draft: OutcomeDraft): { readonly model: string; readonly rows: number }[] {
  const steps = draft.outcome.executions.flatMap((execution) =>
    execution.requests.map((request) => ({ execution, request, model: draft.modelOf(execution) })),
  );
  type Step = (typeof steps)[number];
  const failure = ({ request, model, execution }: Step): number | undefined => {
    const fail = draft.parameter(request, model, "fail");
    if (fail === undefined) return undefined;
    if (!draft.isDecoupled(model)) return draft.end(execution);
    return draft.start(execution) + Number(fail) * Number(draft.parameter(request, model, "gap") ?? 0);
  };
  return steps
    .filter(({ request }) => draft.ensembles.includes(draft.action(request.id)?.model ?? draft.scenario.id))
    .flatMap((step) => {
      if (!draft.isDecoupled(step.model) && failure(step) !== undefined) return [];
      const failed = steps
        .filter(({ request }) => request.id === step.request.id)
        .flatMap((other) => failure(other) ?? []);
      const running = failed.some(
        (at) => draft.start(step.execution) <= at && draft.end(step.execution) > at,
      );
      return running ? [{ model: step.model, rows: draft.rows(step.request, step.model) }] : [];
    });
}

/** Rules about cancelled requests. */
export const cancellations: readonly ScenarioDifference[] = [
  cancelledInExecution,
  cancelledInQueue,
  cancelledSequence,
  failedSteps,
];
