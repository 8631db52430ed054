import type { ModelConfig, Tensor } from "@tritonjs/protocol";
import type { Tensors } from "../../batch/merge-inputs.js";
import type { PendingRequest } from "../../request/pending-request.js";
import type { SequenceInfo } from "../../request/sequence-info.js";
import { copyTensor } from "../../tensor/copy.js";

/** A request that waits in a slot: the properties that decide about batches. */
export interface WaitingRequest {
  readonly queueStart: number;
  readonly inputs: Tensors;
}

/**
 * Triton's implicit state: a state output of one request of a sequence becomes the state input of the next request.
 *
 * ```
 * START --> initial state --> request 1 --> S_NEW --copy--> S of request 2 --> S_NEW --> ... END: gone
 * ```
 *
 * States belong to the sequence's `SequenceInfo`. A START makes a new one, and nothing holds it once the sequence is
 * over.
 */
export class ImplicitStates {
  readonly #states: readonly { readonly input: string; readonly output: string }[];
  readonly #initial: ReadonlyMap<string, Tensor>;
  readonly #kept = new WeakMap<SequenceInfo, Map<string, Tensor>>();

  /** @param initial by name of the state's input, for each state of the configuration */
  constructor(config: ModelConfig, initial: ReadonlyMap<string, Tensor>) {
    this.#states = (config.sequenceBatching?.state ?? []).map(({ inputName, outputName }) => ({
      input: inputName,
      output: outputName,
    }));
    this.#initial = initial;
  }

  /** The request with the states that it would get if it left now. */
  withStates(request: PendingRequest, info: SequenceInfo | undefined): WaitingRequest {
    const kept = info === undefined || request.sequenceStart ? undefined : this.#kept.get(info);
    return {
      queueStart: request.queueStart,
      inputs: new Map([...request.inputs, ...(kept ?? this.#initial)]),
    };
  }

  /** Adds the states of its sequence to a request that leaves. */
  attach(request: PendingRequest, info: SequenceInfo): void {
    let states = this.#kept.get(info);
    if (states === undefined) {
      // Copies, because a callback may write to its inputs.
      states = new Map([...this.#initial].map(([name, tensor]) => [name, copyTensor(tensor)]));
      this.#kept.set(info, states);
    }
    request.inputs = new Map([...request.inputs, ...states]);
  }

  /** Keeps the states of a sequence that the model returned. */
  keep(info: SequenceInfo, outputs: Tensors): void {
    const states = this.#kept.get(info);
    for (const { input, output } of this.#states) {
      const tensor = outputs.get(output);
      // A copy, because the output may be part of a large batch, and may go to the client too.
      if (tensor !== undefined) states?.set(input, copyTensor(tensor));
    }
  }
}
