import type { YieldedPieces } from "./text-callback.js";
import type { YieldedPiece } from "./yielded-piece.js";

/** Calls a function in the context of a request. */
type Scope = <T>(fn: () => T) => T;

/** The pieces of one call of a callback, read one by one in the context of its request. */
export class PieceSource {
  readonly #iterator: AsyncIterator<unknown> | Iterator<unknown>;
  readonly #within: Scope;
  #ended: Promise<unknown> | undefined;

  private constructor(iterator: AsyncIterator<unknown> | Iterator<unknown>, within: Scope) {
    this.#iterator = iterator;
    this.#within = within;
  }

  /** Calls the callback. Its result may be pieces or a single piece, now or later. */
  static async open(
    call: () => YieldedPieces | YieldedPiece | Promise<YieldedPieces | YieldedPiece>,
    within: Scope,
  ): Promise<PieceSource> {
    return new PieceSource(iteratorOf(await within(async () => call())), within);
  }

  async next(): Promise<IteratorResult<unknown>> {
    try {
      return await this.#within(() => this.#iterator.next());
    } catch (thrown) {
      this.#ended ??= Promise.resolve();
      throw thrown;
    }
  }

  /** Asks the callback to clean up: `return()` of a generator. Resolves when it has, at once if it has ended. */
  end(): Promise<unknown> {
    this.#ended ??= this.#within(async () => this.#iterator.return?.());
    return this.#ended;
  }

  /**
   * Like {@link end}, for a request that is over: an error in the clean-up is dropped, because no client waits for it.
   */
  cancel(): void {
    this.end().catch(() => {});
  }
}

function iteratorOf(value: unknown): AsyncIterator<unknown> | Iterator<unknown> {
  if (typeof value === "object" && value !== null) {
    const iterable = value as Partial<AsyncIterable<unknown> & Iterable<unknown>>;
    const iterator = iterable[Symbol.asyncIterator]?.() ?? iterable[Symbol.iterator]?.();
    if (iterator !== undefined) return iterator;
  }
  return [value][Symbol.iterator]();
}
