import {
  type DataType,
  type ModelSequenceBatching,
  type SequenceControl,
  type SequenceControlKind,
  toConfigDataType,
} from "@tritonjs/protocol";
import { keyList } from "../schema/key-list.js";

import { type SequenceStateOption, sequenceStateConfig } from "./sequence-state-options.js";

/** A control tensor: its name, or name and data type. It is 0 for false and 1 for true. */
export type FlagControlOption =
  | string
  | { readonly name: string /** @default "INT32" */; readonly dtype?: "INT32" | "FP32" | "BOOL" };

/**
 * How requests of one sequence (those with the same correlation id) are scheduled: all to one instance, one after
 * the other.
 *
 * @example
 * ```ts
 * const config: ModelOptions = { sequence: { maxCandidateSequences: 64, maxSequenceIdleMicroseconds: 30_000_000 } };
 * ```
 */
export interface SequenceOptions {
  /**
   * `oldest`: the next requests of all sequences join in batches, in the order in which they came. `direct`: every
   * sequence has a row of the batch for itself, and rows without a request are filled with null requests.
   * @default "oldest", which needs no null requests
   */
  readonly strategy?: "oldest" | "direct";
  /** Longest time between two requests of a sequence, in microseconds; then it is over. @default 1000000 */
  readonly maxSequenceIdleMicroseconds?: number;
  /** Sequences that an instance works on at a time, `oldest` only; others wait. @default maxBatchSize */
  readonly maxCandidateSequences?: number;
  /** Batch sizes worth cutting a batch for, `oldest` only. @default [maxBatchSize] */
  readonly preferredBatchSize?: readonly number[];
  /** Answer in the order in which requests reached the instance, `oldest` only. @default false */
  readonly preserveOrdering?: boolean;
  /** Longest time that a request waits for those of other sequences, in microseconds. @default 0 */
  readonly maxQueueDelayMicroseconds?: number;
  /** Part of the slots, from 0 to 1, worth running before the delay ends, `direct` only. @default 0: any */
  readonly minimumSlotUtilization?: number;
  /** Whether the callback may return `RESCHEDULE` for a request, which then runs again. @default false */
  readonly iterative?: boolean;
  /** Tensors that tell the model where in its sequence a request stands. @default none */
  readonly controls?: {
    readonly start?: FlagControlOption;
    readonly end?: FlagControlOption;
    /** False for the null requests of `direct`. */
    readonly ready?: FlagControlOption;
    readonly correlationId?: {
      readonly name: string;
      /** BYTES for ids that are strings. @default "UINT64" */
      readonly dtype?: Extract<DataType, "UINT64" | "INT64" | "UINT32" | "INT32" | "BYTES">;
    };
  };
  /**
   * Tensors that the model gets back with the next request of the sequence, for models that cannot keep anything by
   * themselves: ONNX files. A callback keeps what it likes with `sequenceStateConfig` instead.
   * @default none
   */
  readonly states?: readonly SequenceStateOption[];
}

/** Names of the options, to tell a misspelt one from a known one. */
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
