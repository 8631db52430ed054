import {
  type DataType,
  elementByteSize,
  elementCount,
  encodeBytes,
  errorFor,
  fromConfigDataType,
  keyList,
  type ModelConfig,
  type ModelSequenceBatching,
  type SequenceControl,
  type SequenceControlKind,
  type SequenceStateTensor,
  type Shape,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";
import type { ReadDataFile } from "../system/files.js";
import { countable, dimsProblems, repeated } from "./validate-model-io.js";

/** Default time that a sequence may be idle, in microseconds: Triton's second. */
const DEFAULT_SEQUENCE_IDLE_MICROSECONDS = 1_000_000;

export function normalizeSequenceBatching(
  sequences: ModelSequenceBatching,
  maxBatchSize: number,
): ModelSequenceBatching {
  const { oldest, maxSequenceIdleMicroseconds: idle } = sequences;
  const normal = { ...sequences, maxSequenceIdleMicroseconds: idle || DEFAULT_SEQUENCE_IDLE_MICROSECONDS };
  if (oldest?.preferredBatchSize.length === 0 && maxBatchSize > 0) {
    normal.oldest = { ...oldest, preferredBatchSize: [maxBatchSize] };
  }
  return normal;
}

/** Names of the tensors that the sequence batcher exchanges with the model. Clients neither send nor receive them. */
export function sequenceTensors(sequences: ModelSequenceBatching | undefined) {
  const { controlInput = [], state = [] } = sequences ?? {};
  return {
    inputs: [...controlInput.map(({ name }) => name), ...state.map(({ inputName }) => inputName)],
    outputs: state.map(({ outputName }) => outputName),
  };
}

/** Number of sequences that an instance takes at a time. */
export function sequenceSlots({
  sequenceBatching,
  maxBatchSize,
}: {
  readonly sequenceBatching?: ModelSequenceBatching;
  readonly maxBatchSize: number;
}): number {
  return sequenceBatching?.oldest?.maxCandidateSequences || Math.max(1, maxBatchSize);
}

const FLAG_KINDS = keyList<Record<Exclude<SequenceControlKind, "CONTROL_SEQUENCE_CORRID">, unknown>>({
  CONTROL_SEQUENCE_START: true,
  CONTROL_SEQUENCE_END: true,
  CONTROL_SEQUENCE_READY: true,
});
const ID_DATA_TYPES = ["TYPE_UINT64", "TYPE_INT64", "TYPE_UINT32", "TYPE_INT32", "TYPE_STRING"];

/** Lists problems with sequence batching, apart from those of states, which Triton checks when it makes the model. */
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
  for (const name of repeated(sequences.controlInput)) {
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

/**
 * Lists all problems with the states of a sequence model, with Triton's texts. `use_growable_memory` is accepted on
 * every kind of instance. It is a hint for GPU memory, and the state here grows with the tensors of the model.
 */
export function validateSequenceStates(config: ModelConfig, { state, controlInput }: ModelSequenceBatching) {
  const problems = state.flatMap((one) => stateProblems(config, one));
  const taken = new Set([...config.input, ...controlInput].map(({ name }) => name));
  for (const name of repeated(state.map(({ inputName }) => ({ name: inputName })))) {
    problems.push(`State input name '${name}' specified more than once.`);
  }
  for (const name of repeated(state.map(({ outputName }) => ({ name: outputName })))) {
    problems.push(`State output name '${name}' specified more than once.`);
  }
  for (const { inputName } of state) {
    if (taken.has(inputName)) {
      problems.push(
        `state input '${inputName}' has the name of another input of model '${config.name}': rename one of them`,
      );
    }
  }
  for (const { outputName, dataType } of state) {
    const output = config.output.find(({ name }) => name === outputName);
    if (output !== undefined && output.dataType !== dataType) {
      problems.push(
        `state output '${outputName}' is ${dataType}, but output '${outputName}' of model '${config.name}' is ` +
          output.dataType,
      );
    }
  }
  return problems;
}

function stateProblems(config: ModelConfig, state: SequenceStateTensor): string[] {
  const { inputName, outputName, dataType, dims, initialState } = state;
  const problems: string[] = [];
  const label = `state '${inputName}' of model '${config.name}'`;
  if (inputName === "" || outputName === "") {
    problems.push(`${label} must have an input name and an output name`);
  }
  if (fromConfigDataType(dataType) === undefined) {
    problems.push(`${label}: expected a known data type, got '${dataType}'`);
  }
  problems.push(...dimsProblems(label, dims));
  if (initialState.length > 1) {
    problems.push(
      `initial_state field for state input '${inputName}' must contain exactly one or zero element. Found ` +
        `'${initialState.length}' elements.`,
    );
  }
  for (const initial of initialState.slice(0, 1)) problems.push(...initialProblems(state, initial));
  return problems;
}

function initialProblems(
  { inputName, dataType, dims }: SequenceStateTensor,
  initial: SequenceStateTensor["initialState"][number],
): string[] {
  const problems: string[] = [];
  if (initial.dataType !== dataType) {
    problems.push(
      `The data type used for 'initial_state' field of state '${inputName}' does not match the state data type.`,
    );
  }
  if (initial.name === "") {
    problems.push(`Field 'name' must be set when using initial_state for state input '${inputName}'.`);
  }
  if (initial.dims.length !== dims.length) {
    problems.push(
      "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input " +
        `'${inputName}'. ${initial.dims.length} != ${dims.length}`,
    );
  } else if (initial.dims.includes(-1)) {
    problems.push(`'initial_state' field for state input name '${inputName}' contains variable dimensions.`);
  } else {
    const wrong = initial.dims.findIndex((dim, i) => dims[i] !== -1 && dims[i] !== dim);
    if (wrong >= 0) {
      problems.push(
        `'initial_state' dim for input name '${inputName}' doesn't match 'state' dim description. ` +
          `${initial.dims[wrong]} != ${dims[wrong]}`,
      );
    } else if (!initial.dims.every((dim) => Number.isSafeInteger(dim) && dim >= 0)) {
      problems.push(
        `'initial_state' for state input '${inputName}': expected non-negative integer dims, got [${initial.dims}]`,
      );
    } else if (!countable(initial.dims)) {
      problems.push(`'initial_state' for state input '${inputName}' has too many elements to count`);
    }
  }
  if (initial.zeroData === undefined && initial.dataFile === undefined) {
    problems.push(`initial_state setting expects state'${inputName}' to have state_data set`);
  }
  return problems;
}

/** Initial states of sequences. */
export interface InitialStates {
  /** States by the name of the state's input, with the batch axis if the model has one. */
  readonly states: ReadonlyMap<string, Tensor>;
  /** Problems with the data, with Triton's texts. */
  readonly problems: readonly TritonError[];
}

/**
 * Makes the initial states of a model's sequences: zeros (or empty strings) unless the configuration names a file. A
 * state without `initial_state` starts with zeros too, where Triton would leave its memory uninitialized.
 *
 * @param readFile reads a `data_file`; a model repository has these files in the model's folder `initial_state/`
 */
export function initialStates(config: ModelConfig, readFile: ReadDataFile): InitialStates {
  const states = new Map<string, Tensor>();
  const problems: TritonError[] = [];
  for (const state of config.sequenceBatching?.state ?? []) {
    if (stateProblems(config, state).length > 0) continue;
    try {
      states.set(state.inputName, initialState(state, config.maxBatchSize > 0, readFile));
    } catch (error) {
      problems.push(TritonError.from(error));
    }
  }
  return { states, problems };
}

function initialState(state: SequenceStateTensor, batched: boolean, readFile: ReadDataFile): Tensor {
  const [initial] = state.initialState;
  const datatype = fromConfigDataType(state.dataType)!;
  const dims = initial?.dims ?? state.dims.map((dim) => (dim === -1 ? 1 : dim));
  const file = initial?.dataFile;
  const data = file === undefined ? zeros(datatype, dims) : fileData(state, datatype, dims, file, readFile);
  return Tensor.fromBytes(datatype, batched ? [1, ...dims] : dims, data);
}

function zeros(datatype: DataType, dims: Shape): Uint8Array {
  const count = elementCount(dims);
  return datatype === "BYTES"
    ? encodeBytes(Array.from({ length: count }, () => new Uint8Array()))
    : new Uint8Array(count * elementByteSize(datatype));
}

function fileData(
  { inputName }: SequenceStateTensor,
  datatype: DataType,
  dims: Shape,
  file: string,
  readFile: ReadDataFile,
): Uint8Array {
  const data = readFile(file);
  const count = elementCount(dims);
  if (datatype === "BYTES") {
    const got = Tensor.fromBytes(datatype, dims, data).elements.length;
    if (got === count) return new Uint8Array(data);
    throw errorFor(
      "INVALID_CONFIG",
      `initial_state for state input '${inputName}': expected ${count} elements, got ${got} from ${file}`,
    );
  }
  const expected = count * elementByteSize(datatype);
  if (data.byteLength < expected) {
    throw errorFor(
      "INVALID_CONFIG",
      `initial_state setting expects ${expected} bytes, but the data provided from ${file}only has ` +
        `${data.byteLength} bytes.`,
    );
  }
  return new Uint8Array(data.subarray(0, expected));
}
