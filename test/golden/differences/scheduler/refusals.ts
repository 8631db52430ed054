import { parseConfigText } from "../../support/config-text.js";
import type { ScenarioDifference } from "./outcome-draft.js";

const SHAPE_TENSORS = /shape tensors are only supported for TensorRT platform/;
const UNREADABLE = /failed to read text proto|failed to poll from model repository/;

const shapeTensors: ScenarioDifference = {
  rule: "shape-tensors",
  applies: ({ outcome }) => SHAPE_TENSORS.test(`${outcome.load_error_detail} ${outcome.load_error}`),
  amend: accept,
};

const maxInflightRequests: ScenarioDifference = {
  rule: "max-inflight-requests",
  applies: ({ outcome, config_pbtxt: text }) =>
    UNREADABLE.test(`${outcome.load_error_detail} ${outcome.load_error}`) &&
    text.includes("max_inflight_requests"),
  amend: accept,
};

/** The model loads. */
function accept(scenario: { outcome: { load_error?: string; load_error_detail?: string } }): void {
  delete scenario.outcome.load_error;
  delete scenario.outcome.load_error_detail;
}

const warmupInputNames: ScenarioDifference = {
  rule: "warmup-input-name",
  applies: ({ id, config_pbtxt: text, outcome }) =>
    /expected \d+ inputs but got \d+ inputs/.test(outcome.load_error ?? "") &&
    unknownWarmupInput(text, id) !== undefined,
  amend(scenario) {
    const { id, outcome, config_pbtxt: text } = scenario;
    const name = unknownWarmupInput(text, id);
    outcome.load_error = `unexpected inference input '${name}' for model '${id}'`;
    delete outcome.load_error_detail;
  },
};

/** The first input of a warm-up sample that the model does not have. */
export function unknownWarmupInput(text: string, model: string): string | undefined {
  const { input = [], modelWarmup = [] } = parseConfigText(text, model);
  const names = modelWarmup.flatMap(({ inputs }) => Object.keys(inputs));
  return names.find((name) => !input.some((one) => one.name === name));
}

/** Rules about models that do not load. */
export const refusalRules: readonly ScenarioDifference[] = [
  shapeTensors,
  maxInflightRequests,
  warmupInputNames,
];
