/** A consumer's pause between responses. */
export class Pause {
  #end = () => {};
  /** Resolves when the pause is over. */
  readonly over = new Promise<void>((resolve) => {
    this.#end = resolve;
  });

  end(): void {
    this.#end();
  }
}
