/** Most tokens of prompts in a step that no running text waits for. */
export const MOST_PREFILL_TOKENS = 256;

/** Fewest tokens of prompts in a step, so that a prompt always goes on. */
const FEWEST_TOKENS = 4;

/** Tokens of prompts in the first step beside running texts, whose times are not known yet. */
const FIRST_TOKENS = 16;

/** Largest growth from one step to the next: times of short steps say little about long ones. */
const MOST_GROWTH = 1.5;

/** Weight of the newest time in an average of all before it. */
const NEWEST = 0.2;

/** Share of a step for tokens that prompts may take, below 1 because steps differ. */
const SHARE = 0.8;

/**
 * Decides how many tokens of prompts a step computes. Running texts get one token in each step, so a long prompt
 * stretches the gaps between their tokens. Beside running texts, prompts get about as much time as the step for the
 * tokens itself takes, so a gap at most doubles:
 *
 * ```
 * | tokens |  prompt | tokens |  prompt | tokens | tokens |
 * ```
 *
 * The times are measured. Later parts of a prompt are slower, so their number of tokens falls.
 */
export class PrefillPace {
  #decodeMs: number | undefined;
  #tokens = FIRST_TOKENS;

  /** @param fixed tokens of prompts in each step, in place of measured ones */
  constructor(private readonly fixed?: number | undefined) {}

  /**
   * Tokens of prompts that the next step may compute.
   *
   * @param isBeside true if texts wait for their next token meanwhile
   */
  limit(isBeside: boolean): number {
    if (this.fixed !== undefined) return this.fixed;
    return isBeside ? Math.floor(this.#tokens) : MOST_PREFILL_TOKENS;
  }

  /** Takes the time of a step's tokens. */
  tookDecode(ms: number): void {
    this.#decodeMs = this.#decodeMs === undefined ? ms : (1 - NEWEST) * this.#decodeMs + NEWEST * ms;
  }

  /** Takes the time of a part of a prompt beside running texts. @param tokens of all rows, padding included */
  tookPrefill(ms: number, tokens: number): void {
    if (this.#decodeMs === undefined || ms <= 0) return;
    const fitting = (SHARE * this.#decodeMs * tokens) / ms;
    // A part that was shorter than allowed, such as the end of a prompt, says little about longer ones.
    const most = Math.max(this.#tokens, tokens * MOST_GROWTH);
    this.#tokens = Math.min(MOST_PREFILL_TOKENS, Math.max(FEWEST_TOKENS, Math.min(fitting, most)));
  }
}
