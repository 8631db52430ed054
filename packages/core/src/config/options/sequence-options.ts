import {
  type DataType,
  type ModelSequenceBatching,
  type SequenceControl,
  type SequenceControlKind,
  toConfigDataType,
} from "@tritonjs/protocol";
import { keyList } from "../schema/key-list.js";

import { type SequenceStateOption, sequenceStateConfig } from "./sequence-state-options.js";

/** A control tensor: its name, or its name and data type. 0 means false and 1 means true. */
export type FlagControlOption =
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

/** Names of the options, to detect misspelt ones. */
export const SEQUENCE_OPTION_KEYS = keyList<SequenceOptions>({
  strategy: true,
  maxSequenceIdleMicroseconds: true,
  maxCandidateSequences: true,
  preferredBatchSize: true,
  preserveOrdering: true,
  maxQueueDelayMicroseconds: true,
  minimumSlotUtilization: true,
  iterative: true,
  controls: true,
  states: true,
});

/** Names of the controls. */
export const SEQUENCE_CONTROL_KEYS = keyList<NonNullable<SequenceOptions["controls"]>>({
  start: true,
  end: true,
  ready: true,
  correlationId: true,
});

/** Turns the options into Triton's message. */
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
