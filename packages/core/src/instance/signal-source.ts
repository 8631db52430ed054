/** Source of a signal, which is created on first use. */
export interface SignalSource {
  readonly signal: AbortSignal;
}

class LazySignal {
  readonly #source: SignalSource;

  constructor(source: SignalSource) {
    this.#source = source;
  }

  get signal(): AbortSignal {
    return this.#source.signal;
  }
}

/**
 * Creates an object of these fields that gets its `signal` from the source on access. The getter belongs to a class. An
 * object literal with a getter has a hidden class of its own, which V8 keeps until the next full collection. It would
 * keep the getter alive, with its batch and all tensors.
 */
export function withSignal<T extends object>(fields: T, source: SignalSource): T & SignalSource {
  return Object.assign(new LazySignal(source), fields);
}
