import {
  type DataType,
  type ModelSequenceBatching,
  optionTypes,
  type SequenceControl,
  type SequenceControlKind,
  type SequenceStateTensor,
  type Tensor,
  TritonError,
  tensorFromValue,
  toConfigDataType,
} from "@tritonjs/protocol";
import { fileURLToPath, readFileNow } from "#host";
import type { ReadDataFile } from "../system/files.js";

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

export const SEQUENCE_STATE_OPTION_TYPES = optionTypes<SequenceStateOption>({
  input: "string",
  output: "string",
  dtype: "string",
  shape: "array",
  initial: "any",
  initialFile: "object",
  useSameBufferForStateInputOutput: "boolean",
});

/** Turns an option into Triton's message. A value is treated like a file named after the input. */
function sequenceStateConfig(option: SequenceStateOption): SequenceStateTensor {
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

/** The value as a tensor, or its fault with the shape of the specification, for further checks. */
function givenState({ input, dtype, shape, initial }: SequenceStateOption): Tensor | StateError {
  try {
    return tensorFromValue(initial, { what: `initial state '${input}'`, datatype: dtype, shape });
  } catch (error) {
    return Object.assign(TritonError.from(error), { shape: shape.map((dim) => (dim === -1 ? 1 : dim)) });
  }
}

type StateError = TritonError & { readonly shape: readonly number[] };

/** A control tensor: its name, or its name and data type. 0 means false and 1 means true. */
type FlagControlOption =
  | string
  | { readonly name: string /** @default "INT32" */; readonly dtype?: "INT32" | "FP32" | "BOOL" };

/**
 * How requests of one sequence (requests with the same correlation id) are scheduled: all to one instance, one after
 * the other.
 *
 * @example
 * ```ts
 * const config: ModelOptions = { sequence: { maxCandidateSequences: 64, maxSequenceIdleMicroseconds: 30_000_000 } };
 * ```
 */
export interface SequenceOptions {
  /**
   * `oldest`: the next requests of all sequences join in batches, in order of arrival. `direct`: every sequence has its
   * own row of the batch, and rows without a request are filled with null requests.
   * @default "oldest", which needs no null requests
   */
  readonly strategy?: "oldest" | "direct";
  /** Longest time between two requests of a sequence, in microseconds. Then the sequence ends. @default 1000000 */
  readonly maxSequenceIdleMicroseconds?: number;
  /** Number of sequences that are active in an instance at a time, `oldest` only. Others wait. @default maxBatchSize */
  readonly maxCandidateSequences?: number;
  /** Batch sizes at which a batch is cut before the delay ends, `oldest` only. @default [maxBatchSize] */
  readonly preferredBatchSize?: readonly number[];
  /** Whether responses keep the order in which requests reached the instance, `oldest` only. @default false */
  readonly preserveOrdering?: boolean;
  /** Longest time that a request waits for requests of other sequences, in microseconds. @default 0 */
  readonly maxQueueDelayMicroseconds?: number;
  /**
   * Share of the slots, from 0 to 1, that must be filled for a batch to run before the delay ends, `direct` only.
   * @default 0: any share
   */
  readonly minimumSlotUtilization?: number;
  /** Whether the callback may return `RESCHEDULE` for a request, which then runs again. @default false */
  readonly iterative?: boolean;
  /** Tensors that tell the model about the position of a request in its sequence. @default none */
  readonly controls?: {
    readonly start?: FlagControlOption;
    readonly end?: FlagControlOption;
    /** False for the null requests of `direct`. */
    readonly ready?: FlagControlOption;
    readonly correlationId?: {
      readonly name: string;
      /** Data type of the correlation id; BYTES for ids that are strings. @default "UINT64" */
      readonly dtype?: Extract<DataType, "UINT64" | "INT64" | "UINT32" | "INT32" | "BYTES">;
    };
  };
  /**
   * Tensors that the model gets back with the next request of the sequence, for models that cannot keep state by
   * themselves, such as ONNX files. A callback keeps its state with `sequenceState` instead.
   * @default none
   */
  readonly states?: readonly SequenceStateOption[];
}

export const SEQUENCE_OPTION_TYPES = optionTypes<SequenceOptions>({
  strategy: "string",
  maxSequenceIdleMicroseconds: "number",
  maxCandidateSequences: "number",
  preferredBatchSize: "array",
  preserveOrdering: "boolean",
  maxQueueDelayMicroseconds: "number",
  minimumSlotUtilization: "number",
  iterative: "boolean",
  controls: "any",
  states: "array",
});

export const SEQUENCE_CONTROL_TYPES = optionTypes<NonNullable<SequenceOptions["controls"]>>({
  start: ["object", "string"],
  end: ["object", "string"],
  ready: ["object", "string"],
  correlationId: "object",
});

export function sequenceBatching(options: SequenceOptions): ModelSequenceBatching {
  const { maxQueueDelayMicroseconds = 0, minimumSlotUtilization = 0, controls = {} } = options;
  const strategy =
    options.strategy === "direct"
      ? { direct: { maxQueueDelayMicroseconds, minimumSlotUtilization } }
      : {
          oldest: {
            maxCandidateSequences: options.maxCandidateSequences ?? 0,
            preferredBatchSize: [...(options.preferredBatchSize ?? [])],
            maxQueueDelayMicroseconds,
            preserveOrdering: options.preserveOrdering ?? false,
          },
        };
  return {
    ...strategy,
    maxSequenceIdleMicroseconds: options.maxSequenceIdleMicroseconds ?? 0,
    controlInput: [
      ...flagControl("CONTROL_SEQUENCE_START", controls.start),
      ...flagControl("CONTROL_SEQUENCE_END", controls.end),
      ...flagControl("CONTROL_SEQUENCE_READY", controls.ready),
      ...idControl(controls.correlationId),
    ],
    state: (options.states ?? []).map(sequenceStateConfig),
    iterativeSequence: options.iterative ?? false,
  };
}

const noValues = (kind: SequenceControlKind): SequenceControl => ({
  kind,
  int32FalseTrue: [],
  fp32FalseTrue: [],
  boolFalseTrue: [],
  dataType: "TYPE_INVALID",
});

function flagControl(kind: SequenceControlKind, option: FlagControlOption | undefined) {
  if (option === undefined) return [];
  const { name, dtype = "INT32" } = typeof option === "string" ? { name: option } : option;
  const control = noValues(kind);
  if (dtype === "INT32") control.int32FalseTrue = [0, 1];
  else if (dtype === "FP32") control.fp32FalseTrue = [0, 1];
  else control.boolFalseTrue = [false, true];
  return [{ name, control: [control] }];
}

function idControl(option: NonNullable<SequenceOptions["controls"]>["correlationId"]) {
  if (option === undefined) return [];
  const dataType = toConfigDataType(option.dtype ?? "UINT64");
  return [{ name: option.name, control: [{ ...noValues("CONTROL_SEQUENCE_CORRID"), dataType }] }];
}
