import { type GrammarState, UnheldGrammar } from "./grammar.js";
import { GrammarBudget, type GrammarPool, OverBudget } from "./grammar-budget.js";
import { faultOf, readFormat, UnheldKeywords } from "./grammar-reader.js";
import { JsonScalars, type TokenBytes, type TokenGrammar } from "./token-masks.js";

/**
 * Steps of each try of a job. A job that takes more is tried again after all jobs that have not had as many, so that
 * small formats and the masks of ordinary texts never wait for large ones. The last number is what a format may take at
 * all: about 100 ms of an ordinary machine.
 */
const STEPS_OF_TRIES = [8_000, 60_000, 600_000] as const;
const LAST_TRY = 2;
/** Steps that a text has at first, for reading its format and for its masks. */
export const MAX_STEPS = STEPS_OF_TRIES[LAST_TRY];
/** Steps that a text may take for each of its tokens in the long run: about 5 ms of an ordinary machine. */
const STEPS_PER_TOKEN = 30_000;
/** Largest share of the memory of all grammars that one may have. */
const MAX_SHARE = 0.5;
/** Calls that must fit on the stack where other jobs are begun within one. */
const FREE_CALLS = 2_000;

/** What a thread of grammars is asked. Texts have numbers. */
export type GrammarRequest =
  /** Begins a text in a format, which is JSON. */
  | { readonly type: "begin"; readonly text: number; readonly format: string }
  /** Takes tokens, and asks for those after them. */
  | { readonly type: "tokens"; readonly text: number; readonly tokens: readonly number[] }
  /** Ends a text, and what is done for it. */
  | { readonly type: "end"; readonly text: number };

/** The tokens that may follow in a text, or why there are none. */
export type GrammarAnswer =
  | {
      readonly text: number;
      readonly mask: Int32Array;
      /** True if the text may end here. */
      readonly mayEnd: boolean;
      /** Tells apart the states in which tokens lead to others; undefined if they depend on the text before, too. */
      readonly state: string | undefined;
      /** Keywords that the grammar does not hold, in the first answer. */
      readonly warning: string | undefined;
    }
  | { readonly text: number; readonly error: string };

/** How jobs meet the world: tests give them what a thread gets by messages. */
interface GrammarPort {
  /** The next request, if there is one. */
  next(): GrammarRequest | undefined;
  answer(answer: GrammarAnswer): void;
}

/** A format that is being read or was read, with all that it keeps in memory. */
class HeldFormat {
  /** Undefined until it was read. */
  grammar: TokenGrammar | undefined;
  unheld: string | undefined;
  /** Number of texts in the format. */
  texts = 0;
  /** True while a job works with it. */
  isBusy = false;
  /** True once others needed its memory. */
  isGone = false;

  constructor(
    readonly id: number,
    readonly json: string,
    readonly budget: GrammarBudget,
  ) {}
}

class FormattedText {
  format: HeldFormat | undefined;
  state: GrammarState | undefined;
  readonly scalars = new JsonScalars();
  /** Tokens that are not in the state yet. */
  tokens: readonly number[] = [];
  /** Steps that it may take. */
  steps: number = MAX_STEPS;
  tries = 0;
  isBegun = false;
  isEnded = false;

  constructor(
    readonly id: number,
    readonly json: string,
  ) {}
}

/** Ends the work for a text that has ended. */
class TextEnded extends Error {}

/** Work with a format within other work with it. */
class BusyFormat extends Error {}

/**
 * Reads formats and makes the masks of their texts, the small ones first. Between slices of a job it looks for new ones:
 * those that may take fewer steps are done at once, within the job that runs.
 *
 *     long job:  [slice] [slice]              [slice] [slice] ...
 *     others:                    [mask] [mask]
 *
 * Formats are kept for later texts while the memory of all lasts, those used last the longest. If it does not last for the
 * texts that run, those of the largest grammar fail.
 */
export class GrammarJobs {
  readonly #texts = new Map<number, FormattedText>();
  readonly #queues: FormattedText[][] = STEPS_OF_TRIES.map(() => []);
  /** Formats for later texts by their JSON, in the order of use, the latest last. */
  readonly #known = new Map<string, HeldFormat>();
  /** Those and the ones that are being read. */
  readonly #held = new Set<HeldFormat>();
  readonly #pool: GrammarPool = { bytes: 0 };
  #formats = 0;
  #current: FormattedText | undefined;

  /**
   * @param allowsUnheld true for a warning of keywords that a grammar cannot hold, false for a refusal
   * @param maxBytes estimate of the memory that all grammars may have
   */
  constructor(
    private readonly tokens: TokenBytes,
    private readonly endTokens: readonly number[],
    private readonly allowsUnheld: boolean,
    private readonly maxBytes: number,
    private readonly port: GrammarPort,
  ) {}

  /** Estimate of the memory of all grammars. */
  get bytes(): number {
    return this.#pool.bytes;
  }

  /** Number of formats that are kept. */
  get size(): number {
    return this.#held.size;
  }

  /** Does all that the port has, and returns when nothing is left. */
  run(): void {
    for (;;) {
      this.#takeAll();
      const text = this.#nextBelow(STEPS_OF_TRIES.length);
      if (text === undefined) return;
      this.#do(text);
    }
  }

  #takeAll(): void {
    for (let next = this.port.next(); next !== undefined; next = this.port.next()) {
      if (next.type === "begin") {
        const text = new FormattedText(next.text, next.format);
        this.#texts.set(text.id, text);
        this.#later(text, 0);
        continue;
      }
      const text = this.#texts.get(next.text);
      if (text === undefined) continue;
      if (next.type === "end") this.#end(text);
      else {
        text.tokens = next.tokens;
        text.steps = Math.min(text.steps + STEPS_PER_TOKEN * next.tokens.length, MAX_STEPS);
        this.#later(text, 0);
      }
    }
  }

  #later(text: FormattedText, tries: number): void {
    text.tries = tries;
    this.#queues[tries]!.push(text);
  }

  #nextBelow(tries: number): FormattedText | undefined {
    for (const queue of this.#queues.slice(0, tries)) {
      const text = queue.shift();
      if (text !== undefined) return text;
    }
    return undefined;
  }

  /** Tries a job. A job that needs more steps than this try has waits in the next queue. */
  #do(text: FormattedText): void {
    const outer = this.#current;
    this.#current = text;
    try {
      if (text.isEnded) return;
      if (text.format === undefined) this.#begin(text);
      this.#answer(text);
    } catch (error) {
      this.#failed(text, error, outer !== undefined);
    } finally {
      this.#current = outer;
      this.#makeRoom();
    }
  }

  #failed(text: FormattedText, error: unknown, isWithin: boolean): void {
    if (error instanceof TextEnded) return;
    const mayTakeMore = text.tries < LAST_TRY && STEPS_OF_TRIES[text.tries]! < text.steps;
    if (error instanceof OverBudget && error.kind === "steps" && mayTakeMore)
      this.#later(text, text.tries + 1);
    // Within another job, the stack is short and a format may be in use.
    else if (isWithin && (error instanceof RangeError || error instanceof BusyFormat))
      this.#later(text, LAST_TRY);
    else {
      this.port.answer({ text: text.id, error: faultOf(error, text.isBegun) });
      this.#end(text);
    }
  }

  #end(text: FormattedText): void {
    text.isEnded = true;
    this.#texts.delete(text.id);
    const { format } = text;
    if (format === undefined) return;
    text.format = undefined;
    format.texts--;
    if (format.texts === 0 && this.#known.get(format.json) !== format) this.#drop(format);
  }

  /** Finds or reads the format of a text. */
  #begin(text: FormattedText): void {
    const { json } = text;
    let format = this.#known.get(json);
    if (format === undefined) {
      format = this.#read(text);
      text.steps -= format.budget.used;
    }
    this.#known.delete(json);
    this.#known.set(json, format);
    format.texts++;
    text.format = format;
    text.state = format.grammar!.machine.start;
  }

  #read({ json, steps, tries }: FormattedText): HeldFormat {
    const { tokens, endTokens } = this;
    const limit = Math.min(STEPS_OF_TRIES[tries]!, steps);
    const budget = new GrammarBudget(limit, MAX_SHARE * this.maxBytes, this.#pool);
    const format = new HeldFormat(this.#formats++, json, budget);
    budget.onPause = () => this.#pause(format);
    this.#held.add(format);
    try {
      const { grammar, unheld } = readFormat(json, budget, tokens, endTokens);
      if (unheld !== undefined && !this.allowsUnheld) throw new UnheldKeywords(unheld);
      format.grammar = grammar;
      format.unheld = unheld;
      return format;
    } catch (error) {
      this.#drop(format);
      throw error;
    }
  }

  /** Takes the tokens of a text, and answers with the tokens that may follow. */
  #answer(text: FormattedText): void {
    const format = text.format!;
    const { budget, unheld } = format;
    const { machine } = format.grammar!;
    if (format.isGone) throw new OverBudget("bytes", this.maxBytes);
    if (format.isBusy) throw new BusyFormat();
    budget.begin(Math.min(STEPS_OF_TRIES[text.tries]!, text.steps));
    format.isBusy = true;
    try {
      for (const token of text.tokens) this.#take(text, token, format.grammar!);
      const state = machine.current(text.state!);
      const mask = format.grammar!.mask(state);
      if (!mask.some((word) => word !== 0)) {
        throw new UnheldGrammar("expected a token for it in the model's vocabulary, got none");
      }
      const warning = text.isBegun ? undefined : unheld;
      const { mayEnd, id, generation } = machine.current(state);
      const name = machine.dependsOnScalars ? undefined : `${format.id} ${generation} ${id}`;
      this.port.answer({ text: text.id, mask, mayEnd, state: name, warning });
      text.isBegun = true;
      text.steps -= budget.used;
    } finally {
      format.isBusy = false;
    }
  }

  #take(text: FormattedText, token: number, grammar: TokenGrammar): void {
    const goBack = text.scalars.mark();
    try {
      const state = grammar.after(text.state!, token, text.scalars);
      // The mask that the text had allows the token.
      if (state === undefined) throw new UnheldGrammar(`it does not allow token ${token}`);
      text.state = state;
      text.tokens = text.tokens.slice(1);
    } catch (error) {
      goBack();
      throw error;
    }
  }

  /** Between slices of a job: takes what has come, and does the smaller jobs. */
  #pause(format: HeldFormat): void {
    needStack(FREE_CALLS);
    this.#takeAll();
    this.#makeRoom();
    const text = this.#current!;
    if (text.isEnded) throw new TextEnded();
    if (format.isGone) throw new OverBudget("bytes", this.maxBytes);
    for (let next = this.#nextBelow(text.tries); next !== undefined; next = this.#nextBelow(text.tries))
      this.#do(next);
  }

  /** Drops formats while all take too much memory: first those without texts, then the largest. */
  #makeRoom(): void {
    while (this.#pool.bytes > this.maxBytes && this.#held.size > 0) {
      const unused = [...this.#known.values()].find(({ texts }) => texts === 0);
      this.#drop(unused ?? [...this.#held].reduce((a, b) => (a.budget.bytes < b.budget.bytes ? b : a)));
    }
  }

  #drop(format: HeldFormat): void {
    format.isGone = true;
    if (this.#known.get(format.json) === format) this.#known.delete(format.json);
    if (this.#held.delete(format)) format.budget.leavePool();
  }
}

/** Checks that the stack has room for a number of calls. @throws RangeError if it has not */
function needStack(calls: number): number {
  return calls === 0 ? 0 : 1 + needStack(calls - 1);
}
