import {
  elementCount,
  fromConfigDataType,
  type ModelConfig,
  type ModelSequenceBatching,
  type SequenceStateTensor,
} from "@tritonjs/protocol";

/**
 * Lists all problems with the states of a sequence model, with Triton's texts. `use_growable_memory` is accepted on
 * every kind of instance. It is a hint for GPU memory, and the state here grows with the tensors of the model.
 */
export function validateSequenceStates(config: ModelConfig, { state, controlInput }: ModelSequenceBatching) {
  const problems = state.flatMap((one) => stateProblems(config, one));
  const taken = new Set([...config.input, ...controlInput].map(({ name }) => name));
  for (const name of repeated(state.map(({ inputName }) => inputName))) {
    problems.push(`State input name '${name}' specified more than once.`);
  }
  for (const name of repeated(state.map(({ outputName }) => outputName))) {
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

/** Lists problems with one state. */
export function stateProblems(config: ModelConfig, state: SequenceStateTensor): string[] {
  const { inputName, outputName, dataType, dims, initialState } = state;
  const problems: string[] = [];
  const label = `state '${inputName}' of model '${config.name}'`;
  if (inputName === "" || outputName === "") {
    problems.push(`${label} must have an input name and an output name`);
  }
  if (fromConfigDataType(dataType) === undefined) {
    problems.push(`${label}: expected a known data type, got '${dataType}'`);
  }
  const impossible = dims.find((dim) => !Number.isSafeInteger(dim) || dim < -1 || dim === 0);
  if (impossible !== undefined) {
    problems.push(
      `${label} dimension must be integer >= 1, or -1 to indicate a variable-size dimension, got ${impossible}`,
    );
  } else if (!countable(dims)) {
    problems.push(`${label} has too many elements to count: [${dims.join(",")}]`);
  }
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

function countable(dims: readonly number[]): boolean {
  try {
    elementCount(dims.filter((dim) => dim !== -1));
    return true;
  } catch {
    // An impossible dimension has already been reported.
    return dims.some((dim) => !Number.isSafeInteger(dim) || dim < -1);
  }
}

function repeated(names: readonly string[]): Set<string> {
  return new Set(names.filter((name, i) => name !== "" && names.indexOf(name) !== i));
}
