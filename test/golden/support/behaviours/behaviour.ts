import type { Parameters, RESCHEDULE, SequenceInfo } from "@tritonjs/core";
import type { Array_ } from "./tensors.js";

/** A request as a behaviour sees it: as in the library's plain callbacks, with untyped tensors. */
export interface ModelRequest {
  readonly id: string;
  readonly parameters: Parameters;
  readonly inputs: Readonly<Record<string, Array_ | undefined>>;
  /** Empty for all. */
  readonly requestedOutputs: readonly string[];
  readonly correlationId: bigint | string | undefined;
  readonly sequenceStart: boolean;
  readonly sequenceEnd: boolean;
  readonly sequence: SequenceInfo | undefined;
  /** False for a null request of a sequence batch. */
  readonly ready: boolean;
  readonly queueTimeoutMicroseconds?: number;
  readonly signal: AbortSignal;
}

/** The answer of a behaviour to one request. */
export type ModelResult = Readonly<Record<string, Array_>> | Error | typeof RESCHEDULE;

/** The model that a behaviour plays. */
export interface PlayedModel {
  readonly version: number;
  /** Names in the order of the configuration. */
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  /** Resolves after `ms` milliseconds. */
  sleep(ms: number): Promise<void>;
}

/** The behaviour of a recorded model for one request, re-implemented from the words in `models.json`. */
export type Behaviour = (request: ModelRequest, model: PlayedModel) => ModelResult | Promise<ModelResult>;

/** The only output is the only input unchanged. */
export const identity: Behaviour = ({ inputs }, { inputNames, outputNames }) => {
  const input = inputs[inputNames[0] as string];
  return { [outputNames[0] as string]: input as Array_ };
};

/** Turns a behaviour into a plain callback: requests of a batch are played one after the other. */
export function toInferFunc(behaviour: Behaviour, model: PlayedModel) {
  return async (requests: readonly ModelRequest[]): Promise<ModelResult[]> => {
    const results: ModelResult[] = [];
    for (const request of requests) results.push(await behaviour(request, model));
    return results;
  };
}
