import type { Scenario } from "../../support/scheduler/scenario.js";
import {
  type ExecutionDraft,
  OutcomeDraft,
  type RequestDraft,
  type ScenarioDifference,
} from "./outcome-draft.js";

const DEADLOCK = /unexpected deadlock, at least one output is not set/;

interface Step {
  readonly modelName: string;
  readonly inputMap: Readonly<Record<string, string>>;
  readonly outputMap: Readonly<Record<string, string>>;
}

/** Computes tensors of an ensemble whose members add one to their input. */
class Evaluation {
  readonly used = new Set<Step>();

  constructor(
    private readonly steps: readonly Step[],
    private readonly inputs: Readonly<Record<string, readonly number[]>>,
  ) {}

  value(tensor: string): number[] {
    const given = this.inputs[tensor];
    if (given !== undefined) return [...given];
    const step = this.steps.find(({ outputMap }) => Object.values(outputMap).includes(tensor)) as Step;
    const [output = ""] = Object.entries(step.outputMap).find(([, name]) => name === tensor) ?? [];
    this.used.add(step);
    const source = step.inputMap[output.replace(/_OUT$/, "")] as string;
    return this.value(source).map((value) => value + 1);
  }
}

/** An output that another step also reads can be requested alone: the recorded server found a deadlock. */
const outputsOfInnerSteps: ScenarioDifference = {
  rule: "ensemble-inner-output",
  applies: ({ outcome }) => outcome.responses?.some(({ message = "" }) => DEADLOCK.test(message)) === true,
  amend(scenario) {
    const draft = new OutcomeDraft(scenario);
    for (const response of draft.outcome.responses) {
      if (!DEADLOCK.test(response.message ?? "")) continue;
      const action = draft.action(response.id) as Scenario["actions"][number];
      const ensemble = action.model ?? scenario.id;
      const steps = draft.config(ensemble).ensembleScheduling?.step as readonly Step[] | undefined;
      const inputs = Object.entries(action.in ?? {});
      const evaluation = new Evaluation(
        steps ?? [],
        Object.fromEntries(inputs.map(([name, { data }]) => [name, data])),
      );
      const shape = [...(inputs[0]?.[1].shape ?? [])];
      const outputs = Object.fromEntries(
        (action.outputs ?? []).map((name) => [
          name,
          { datatype: "INT32", shape, data: evaluation.value(name) },
        ]),
      );
      delete response.code;
      delete response.message;
      const parameters = { sequence_id: 0, sequence_start: false, sequence_end: false };
      Object.assign(response, { ok: true, outputs, parameters });
      run(draft, evaluation, action);
      count(draft, ensemble, shape[0] ?? 1);
      // The recorded server counted the failure twice.
      draft.statistics(ensemble).fail -= 2;
    }
  },
};

/** The steps that the outputs need run, in the order of the steps. */
function run(
  draft: OutcomeDraft,
  { used, ...evaluation }: Evaluation,
  action: Scenario["actions"][number],
): void {
  void evaluation;
  for (const step of [...used].reverse()) {
    const shape = [...(Object.values(action.in ?? {})[0]?.shape ?? [])];
    const inputs = Object.entries(step.inputMap).map(([name, tensor]) => [
      name,
      [shape, action.in?.[tensor]?.data],
    ]);
    const request = { id: action.id, in: Object.fromEntries(inputs) } as unknown as RequestDraft;
    draft.outcome.executions.push({
      model: step.modelName,
      requests: [request],
      about_ms: action.at_ms,
    } as ExecutionDraft);
    count(draft, step.modelName, shape[0] ?? 1);
  }
}

function count(draft: OutcomeDraft, model: string, rows: number): void {
  const statistics = draft.statistics(model);
  statistics.inference_count += rows;
  for (const event of [
    "execution_count",
    "success",
    "queue",
    "compute_input",
    "compute_infer",
    "compute_output",
  ] as const) {
    statistics[event]++;
  }
  const entry = statistics.batch_stats.find(({ batch_size }) => batch_size === rows);
  if (entry !== undefined) entry.compute_infer++;
  else statistics.batch_stats.push({ batch_size: rows, compute_infer: 1 });
}

export const ensembleOutputs: readonly ScenarioDifference[] = [outputsOfInnerSteps];
