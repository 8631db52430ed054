/** Where a signal comes from, made when it is first asked for. */
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
 * An object of these fields that asks its source for the `signal`. The getter is that of a class: an object literal with a
 * getter gets a hidden class of its own, which V8 keeps until the next full collection, and with it the getter, the batch
 * that it knows, and all tensors of that.
 */
export function withSignal<T extends object>(fields: T, source: SignalSource): T & SignalSource {
  return Object.assign(new LazySignal(source), fields);
}
