import type {
  ModelConfig,
  ModelSequenceBatching,
  SequenceControl,
  SequenceControlKind,
} from "@tritonjs/protocol";
import { keyList } from "../schema/key-list.js";

import { validateSequenceStates } from "./validate-sequence-states.js";

const FLAG_KINDS = keyList<Record<Exclude<SequenceControlKind, "CONTROL_SEQUENCE_CORRID">, unknown>>({
  CONTROL_SEQUENCE_START: true,
  CONTROL_SEQUENCE_END: true,
  CONTROL_SEQUENCE_READY: true,
});
const ID_DATA_TYPES = ["TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING"];

/** Lists all problems with the sequence batching of a configuration, with Triton's texts. */
export function validateSequenceBatching(config: ModelConfig, sequences: ModelSequenceBatching): string[] {
  return [...sequenceSchedulingProblems(config, sequences), ...validateSequenceStates(config, sequences)];
}

/** Lists the same problems without those of states, which Triton checks only when it makes the model. */
export function sequenceSchedulingProblems(config: ModelConfig, sequences: ModelSequenceBatching): string[] {
  const model = config.name;
  const problems: string[] = [];
  if (config.dynamicBatching !== undefined) {
    problems.push(`model '${model}' has dynamic batching and sequence batching: leave one of them out`);
  }
  if (config.responseCache?.enable) {
    problems.push(
      `Response Cache does not currently support model ${model} with sequence batching scheduler. ` +
        "Please disable the response cache.",
    );
  }
  if (sequences.direct !== undefined && sequences.oldest !== undefined) {
    problems.push(
      `sequence batching of model '${model}' has the direct and the oldest strategy: leave one of them out`,
    );
  }
  checkTimes(model, sequences, problems);
  checkControls(config, sequences, problems);
  checkStrategy(config, sequences, problems);
  return problems;
}

function checkTimes(model: string, sequences: ModelSequenceBatching, problems: string[]): void {
  const times = {
    "max sequence idle": sequences.maxSequenceIdleMicroseconds,
    "max queue delay": (sequences.oldest ?? sequences.direct)?.maxQueueDelayMicroseconds ?? 0,
  };
  for (const [what, time] of Object.entries(times)) {
    if (!Number.isFinite(time) || time < 0) {
      problems.push(`sequence batching ${what} must be a number of microseconds >= 0 for ${model}`);
    }
  }
}

function checkStrategy(
  { name, maxBatchSize }: ModelConfig,
  { direct, oldest }: ModelSequenceBatching,
  problems: string[],
): void {
  for (const size of oldest?.preferredBatchSize ?? []) {
    if (!Number.isInteger(size) || size <= 0) {
      problems.push(`sequence batching preferred batch size must be positive for ${name}`);
    } else if (size > maxBatchSize) {
      problems.push(`sequence batching preferred batch size must be <= max batch size for ${name}`);
    }
  }
  const candidates = oldest?.maxCandidateSequences ?? 0;
  if (!Number.isInteger(candidates) || candidates < 0) {
    problems.push(`sequence batching max candidate sequences must be an integer >= 0 for ${name}`);
  }
  const utilization = direct?.minimumSlotUtilization ?? 0;
  if (!(utilization >= 0 && utilization <= 1)) {
    problems.push(`sequence batching minimum slot utilization must be in range (0.0, 1.0] for ${name}`);
  }
}

function checkControls(config: ModelConfig, sequences: ModelSequenceBatching, problems: string[]): void {
  const model = config.name;
  const names = sequences.controlInput.map(({ name }) => name);
  if (names.includes("")) problems.push(`sequence batching control tensor must have a name for ${model}`);
  for (const name of new Set(names.filter((one, i) => one !== "" && names.indexOf(one) !== i))) {
    problems.push(
      `sequence batching control tensor '${name}' is specified for multiple control kinds for ${model}`,
    );
  }
  for (const input of config.input) {
    if (names.includes(input.name)) {
      problems.push(
        `model '${model}' lists the sequence batching control tensor '${input.name}' as an input: take it out of 'input'`,
      );
    }
  }
  const controls = sequences.controlInput.flatMap(({ control }) => control);
  for (const kind of [...FLAG_KINDS, "CONTROL_SEQUENCE_CORRID"]) {
    if (controls.filter((control) => control.kind === kind).length > 1) {
      problems.push(`sequence batching specifies multiple ${kind} tensors for ${model}`);
    }
  }
  for (const control of controls) {
    if (control.kind === "CONTROL_SEQUENCE_CORRID") checkId(model, control, problems);
    else checkFlag(model, control, problems);
  }
}

function valuesOf(control: SequenceControl): [string, readonly unknown[]][] {
  const all: [string, readonly unknown[]][] = [
    ["int32_false_true", control.int32FalseTrue],
    ["fp32_false_true", control.fp32FalseTrue],
    ["bool_false_true", control.boolFalseTrue],
  ];
  return all.filter(([, values]) => values.length > 0);
}

function checkFlag(model: string, control: SequenceControl, problems: string[]): void {
  const { kind } = control;
  const given = valuesOf(control);
  if (given.length === 0) {
    problems.push(
      "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for " +
        `${kind} for ${model}`,
    );
  } else if (given.length > 1) {
    problems.push(
      "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and " +
        `'bool_false_true' for ${kind} for ${model}`,
    );
  } else if (given[0]![1].length !== 2) {
    problems.push(
      `sequence batching control '${given[0]![0]}' must have exactly 2 entries for ${kind} for ${model}`,
    );
  }
}

function checkId(model: string, control: SequenceControl, problems: string[]): void {
  if (valuesOf(control).length > 0) {
    problems.push(
      "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for " +
        `CONTROL_SEQUENCE_CORRID for ${model}`,
    );
  }
  if (!ID_DATA_TYPES.includes(control.dataType)) {
    problems.push(
      `unexpected data type for control CONTROL_SEQUENCE_CORRID for ${model}. Allowed data types are TYPE_UINT64, ` +
        "TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING",
    );
  }
}
