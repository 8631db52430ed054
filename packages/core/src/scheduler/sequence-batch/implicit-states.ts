import type { ModelConfig, Tensor } from "@tritonjs/protocol";
import type { Tensors } from "../../batch/merge-inputs.js";
import type { PendingRequest } from "../../request/pending-request.js";
import type { SequenceInfo } from "../../request/sequence-info.js";
import { copyTensor } from "../../tensor/copy.js";

/** A request that waits in a slot, as far as it decides about batches. */
export interface WaitingRequest {
  readonly queueStart: number;
  readonly inputs: Tensors;
}

/**
 * Triton's implicit state: what the model gives as a state output of one request of a sequence, it gets as the state
 * input of the next.
 *
 * ```
 * START --> initial state --> request 1 --> S_NEW --copy--> S of request 2 --> S_NEW --> ... END: gone
 * ```
 *
 * States hang on the sequence's `SequenceInfo`, which a START makes anew and nothing holds once the sequence is over.
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

  /** The request as it will leave: with the states that it would get now. */
  withStates(request: PendingRequest, info: SequenceInfo | undefined): WaitingRequest {
    const kept = info === undefined || request.sequenceStart ? undefined : this.#kept.get(info);
    return {
      queueStart: request.queueStart,
      inputs: new Map([...request.inputs, ...(kept ?? this.#initial)]),
    };
  }

  /** Gives a request that leaves the states of its sequence. */
  attach(request: PendingRequest, info: SequenceInfo): void {
    let states = this.#kept.get(info);
    if (states === undefined) {
      // Copies: a callback may write to its inputs.
      states = new Map([...this.#initial].map(([name, tensor]) => [name, copyTensor(tensor)]));
      this.#kept.set(info, states);
    }
    request.inputs = new Map([...request.inputs, ...states]);
  }

  /** Keeps what the model has made of the states of a sequence. */
  keep(info: SequenceInfo, outputs: Tensors): void {
    const states = this.#kept.get(info);
    for (const { input, output } of this.#states) {
      const tensor = outputs.get(output);
      // A copy: the output may be a part of a large batch, and may go to the client too.
      if (tensor !== undefined) states?.set(input, copyTensor(tensor));
    }
  }
}
