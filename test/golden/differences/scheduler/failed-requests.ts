import type { Scenario } from "../../support/scheduler/scenario.js";
import {
  type ExecutionDraft,
  OutcomeDraft,
  type RequestDraft,
  type ScenarioDifference,
} from "./outcome-draft.js";

interface Executed {
  readonly model: string;
  readonly execution: ExecutionDraft;
  readonly request: RequestDraft;
}

function executed(draft: OutcomeDraft): Executed[] {
  return draft.outcome.executions.flatMap((execution) =>
    execution.requests.map((request) => ({ model: draft.modelOf(execution), execution, request })),
  );
}

/** Requests that the recorder answered with an error. Scenarios with a cache have rules of their own. */
function answeredWithError(draft: OutcomeDraft): Executed[] {
  return executed(draft).filter(
    ({ model, request }) =>
      !draft.isDecoupled(model) &&
      draft.config(model).responseCache?.enable !== true &&
      draft.parameter(request, model, "fail") !== undefined,
  );
}

/** The outputs that a request's answer lacks although its model has them. */
function omittedOutputs(draft: OutcomeDraft, { model, request }: Executed): string[] {
  const omitted = String(draft.parameter(request, model, "omit") ?? "").split(",");
  const declared = (draft.config(model).output ?? []).map(({ name }) => name);
  return declared.filter((name) => omitted.includes(name));
}

function answeredWithoutOutputs(draft: OutcomeDraft): Executed[] {
  return executed(draft).filter(
    (one) => draft.config(one.model).responseCache?.enable !== true && omittedOutputs(draft, one).length > 0,
  );
}

const failedRequests: ScenarioDifference = {
  rule: "failed-requests",
  applies: ({ outcome, ...scenario }: Scenario) =>
    outcome.executions !== undefined &&
    answeredWithError(new OutcomeDraft({ ...scenario, outcome })).length > 0,
  amend(scenario) {
    const draft = new OutcomeDraft(scenario);
    for (const { model, request } of answeredWithError(draft)) {
      draft.bookAsFailed(model, draft.rows(request, model));
    }
  },
};

/** The model's answer lacks an output: the request fails, and no later step of an ensemble sees it. */
const checkedOutputs: ScenarioDifference = {
  rule: "checked-outputs",
  applies: (scenario) =>
    scenario.outcome.executions !== undefined &&
    answeredWithoutOutputs(new OutcomeDraft(scenario)).length > 0,
  amend(scenario) {
    const draft = new OutcomeDraft(scenario);
    for (const one of answeredWithoutOutputs(draft)) {
      const { model, request } = one;
      const lacking = omittedOutputs(draft, one);
      const given = (draft.config(model).output ?? [])
        .map(({ name }) => name)
        .filter((name) => !lacking.includes(name));
      const list = `[${given.map((name) => `'${name}'`).join(", ")}]`;
      const text = `model '${model}' did not return output '${lacking[0]}': got ${list}`;
      draft.bookAsFailed(model, draft.rows(request, model));
      fail(draft, request, model, text);
    }
  },
};

/** The client gets an error in place of the recorded answer. */
function fail(draft: OutcomeDraft, request: RequestDraft, model: string, text: string): void {
  const response = draft.response(request.id);
  const ensemble = draft.action(request.id)?.model ?? draft.scenario.id;
  if (response === undefined) return;
  const within = ensemble === model ? "" : `in ensemble '${ensemble}', `;
  if (within !== "" && response.ok) draft.bookEnsembleAsFailed(ensemble, draft.rows(request, ensemble));
  delete response.outputs;
  delete response.parameters;
  Object.assign(response, { ok: false, code: "INTERNAL", message: within + text });
}

const iterativeEnds: ScenarioDifference = {
  rule: "iterative-end",
  applies: ({ config_pbtxt: text, outcome }) =>
    /iterative_sequence:\s*true/.test(text) && outcome.responses?.some(({ ok }) => ok) === true,
  amend(scenario) {
    const draft = new OutcomeDraft(scenario);
    const answered = draft.outcome.responses.filter(({ ok }) => ok).length;
    const statistics = draft.statistics(scenario.id);
    statistics.fail = Math.max(0, statistics.fail - answered);
  },
};

const requestsWithoutInputs: ScenarioDifference = {
  rule: "request-without-inputs",
  applies: ({ outcome }) => outcome.responses?.some(({ message }) => isWithoutInputs(message)) === true,
  amend(scenario) {
    const draft = new OutcomeDraft(scenario);
    for (const response of draft.outcome.responses.filter(({ message }) => isWithoutInputs(message))) {
      const model = draft.action(response.id)?.model ?? scenario.id;
      response.message = response.message?.replace(
        /out of bounds index 0: request has 0 inputs$/,
        `the request to model '${model}' has no input: expected at least one, which gives the batch size`,
      );
      draft.statistics(model).fail--;
    }
  },
};

function isWithoutInputs(message = ""): boolean {
  return message.endsWith("out of bounds index 0: request has 0 inputs");
}

/** The recorder is a callback here and returns no parameters of its own. */
const callbackParameters: ScenarioDifference = {
  rule: "callback-response-parameters",
  onlyCallbacks: true,
  applies: ({ outcome }) =>
    outcome.responses?.some(({ parameters }) => parameters?.rp !== undefined) === true,
  amend(scenario) {
    for (const { parameters } of scenario.outcome.responses) delete parameters?.rp;
  },
};

/** Rules about failed requests and their counts. */
export const failures: readonly ScenarioDifference[] = [
  failedRequests,
  checkedOutputs,
  iterativeEnds,
  requestsWithoutInputs,
  callbackParameters,
];
