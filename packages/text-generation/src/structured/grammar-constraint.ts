import { TritonError } from "@tritonjs/protocol";
import type { TokenConstraint } from "./token-constraint.js";
import type { GrammarMatcher } from "./web-xgrammar.js";

/** Constraint over a matcher of the library. */
export class GrammarConstraint implements TokenConstraint {
  #matcher: GrammarMatcher | undefined;
  #mask: Promise<Int32Array> | undefined;
  #finished = false;

  /** `size` is the width of the logits. `giveBack` takes the matcher when the constraint is released. */
  constructor(
    matcher: GrammarMatcher,
    readonly size: number,
    readonly giveBack: () => void,
  ) {
    this.#matcher = matcher;
  }

  get finished(): boolean {
    return this.#finished;
  }

  allowed(): Promise<Int32Array> {
    this.#mask ??= this.#next();
    return this.#mask;
  }

  accept(token: number): boolean {
    if (!this.#open().acceptToken(token)) {
      throw new TritonError("INTERNAL", `cannot accept token ${token}: expected one that the format allows`);
    }
    this.#mask = undefined;
    this.#finished = this.#open().isTerminated();
    return this.#finished;
  }

  release(): void {
    if (this.#matcher === undefined) return;
    this.#matcher.reset();
    this.#matcher = undefined;
    this.giveBack();
  }

  async #next(): Promise<Int32Array> {
    // The library aborts when it is asked after the end.
    const mask = await this.#open().getNextTokenBitmask();
    // It also sets bits of the last word that have no token.
    const used = this.size & 31;
    const last = mask.length - 1;
    if (used !== 0) mask[last] = (mask[last] as number) & ((1 << used) - 1);
    if (mask.some((word) => word !== 0)) return mask;
    throw new TritonError(
      "INVALID_ARG",
      "cannot continue the answer in its format: expected a token for it in the model's vocabulary, got none",
    );
  }

  #open(): GrammarMatcher {
    if (this.#matcher !== undefined && !this.#finished) return this.#matcher;
    const state = this.#finished ? "finished" : "released";
    throw new TritonError("INTERNAL", `cannot use the constraint of an answer: it is ${state}`);
  }
}
