import { fileURLToPath } from "node:url";
import {
  type DataType,
  type SequenceStateTensor,
  type Tensor,
  TritonError,
  tensorFromValue,
  toConfigDataType,
} from "@tritonjs/protocol";
import type { ReadDataFile } from "../../files/data-file.js";
import { readFileNow } from "../../files/read-small-file.js";

import { keyList } from "../schema/key-list.js";

/**
 * A tensor that is kept between the requests of a sequence. The model's `output` becomes its `input` with the next
 * request. Clients do not send the tensor. They receive it only if it is among the model's outputs too.
 *
 * @example
 * ```ts
 * const states: SequenceStateOption[] = [{ input: "past", output: "present", dtype: "FP32", shape: [-1, 64] }];
 * ```
 */
export interface SequenceStateOption {
  /** Name of the model's input. */
  readonly input: string;
  /** Name of the model's output. A response without it leaves the state unchanged. */
  readonly output: string;
  readonly dtype: DataType;
  /** Shape without the batch axis; -1 for a dimension that changes from request to request. */
  readonly shape: readonly number[];
  /**
   * Initial state of a sequence: an ndarray, a typed array or nested arrays.
   * @default zeros, or empty strings; dimensions of -1 become 1
   */
  readonly initial?: unknown;
  /** File with the initial state in its wire form, instead of `initial`. */
  readonly initialFile?: { readonly path: string | URL; readonly shape: readonly number[] };
  /** Triton's `use_same_buffer_for_input_output`. It is shown in the configuration, but has no effect here. */
  readonly useSameBufferForStateInputOutput?: boolean;
}

/** Names of the options, to detect misspelt ones. */
export const SEQUENCE_STATE_OPTION_KEYS = keyList<SequenceStateOption>({
  input: true,
  output: true,
  dtype: true,
  shape: true,
  initial: true,
  initialFile: true,
  useSameBufferForStateInputOutput: true,
});

/** Turns an option into Triton's message. A value is treated like a file named after the input. */
export function sequenceStateConfig(option: SequenceStateOption): SequenceStateTensor {
  const { input, output, dtype, shape, initial, initialFile } = option;
  const dataType = toConfigDataType(dtype);
  const given = initialFile ?? (initial === undefined ? undefined : givenState(option));
  return {
    inputName: input,
    outputName: output,
    dataType,
    dims: [...shape],
    initialState:
      given === undefined
        ? []
        : [{ dataType, dims: [...given.shape], dataFile: fileOf(option), name: `initial ${input}` }],
    useSameBufferForInputOutput: option.useSameBufferForStateInputOutput ?? false,
    useGrowableMemory: false,
  };
}

/** Lists problems with the options themselves. */
export function sequenceStateProblems(options: readonly SequenceStateOption[]): string[] {
  return options.flatMap((option) => {
    if (option.initial === undefined) return [];
    if (option.initialFile !== undefined) {
      return [
        `config.sequence.states: state '${option.input}' has initial and initialFile: leave one of them out`,
      ];
    }
    const state = givenState(option);
    return TritonError.is(state) ? [state.message] : [];
  });
}

/** Reads the initial states of options: values as given, and files from their paths. */
export function stateFilesOf(options: readonly SequenceStateOption[]): ReadDataFile {
  const values = options.filter(({ initial, initialFile }) => initial !== undefined && !initialFile);
  return (file) => {
    const option = values.find((one) => fileOf(one) === file);
    const state = option && givenState(option);
    return state !== undefined && !TritonError.is(state) ? state.bytes : readFileNow(file);
  };
}

function fileOf({ input, initialFile }: SequenceStateOption): string {
  if (initialFile === undefined) return input;
  return initialFile.path instanceof URL ? fileURLToPath(initialFile.path) : initialFile.path;
}

/**
 * The value as a tensor, or the reason why it cannot become one. An error value has the shape of the specification, for
 * further checks.
 */
function givenState({ input, dtype, shape, initial }: SequenceStateOption): Tensor | StateError {
  try {
    return tensorFromValue(initial, { what: `initial state '${input}'`, datatype: dtype, shape });
  } catch (error) {
    return Object.assign(TritonError.from(error), { shape: shape.map((dim) => (dim === -1 ? 1 : dim)) });
  }
}

type StateError = TritonError & { readonly shape: readonly number[] };
