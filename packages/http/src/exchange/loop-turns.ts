import type { JsonValue } from "../json/json-value.js";
import { endJsonSteps, jsonSteps, parseJson } from "../json/parse-json.js";
import { DEFAULT_MAX_INPUT_SIZE, maxNumbers } from "../limits.js";
import { ClientGone, type V2Request } from "./request.js";

/** Milliseconds of each turn of the event loop for long documents of all requests together. */
const SHARE_MS = 5;

/** Begins work whose turn has come. It pauses after every part that takes about a millisecond. */
type Begin<T> = () => Generator<void, T>;

type Client = Pick<V2Request, "gone">;

interface Job {
  readonly begin: Begin<unknown>;
  /** Undefined until its turn comes. */
  steps: Generator<void, unknown> | undefined;
  /** The client that waits for the work. */
  readonly client: Client;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** The event loop. `defer` runs a function in its next turn. */
interface LoopClock {
  now(): number;
  defer(run: () => void): void;
}

const ownLoop: LoopClock = { now: () => performance.now(), defer: (run) => void setImmediate(run) };

/**
 * Reads long requests and writes long answers in steps, for a few milliseconds of each turn of the event loop. Sockets,
 * timers and health probes take turns with them:
 *
 *     turn 1            turn 2            turn 3
 *     events | A A A |  events | A A B |  events | B B B |
 *
 * One job is done after the other, so that one document at a time takes the memory of its values. Answers go first:
 * they end requests, whose memory is then free.
 */
export class LoopTurns {
  readonly #clock: LoopClock;
  readonly #answers: Job[] = [];
  readonly #requests: Job[] = [];
  /** Time at which the share of this turn is spent. */
  #until = 0;
  #isTurn = false;

  constructor(clock: LoopClock = ownLoop) {
    this.#clock = clock;
  }

  /** True when further requests wait behind the one that is read now. */
  get hasRequests(): boolean {
    return this.#requests.length > 1;
  }

  read<T>(client: Client, begin: Begin<T>): T | Promise<T> {
    return this.#run(this.#requests, client, begin);
  }

  write<T>(client: Client, begin: Begin<T>): T | Promise<T> {
    return this.#run(this.#answers, client, begin);
  }

  /**
   * Does the work at once if none is waiting and the turn has time left. Otherwise the promise resolves when it is done.
   *
   * @throws the error of a step, and ClientGone when the client leaves before the work is done.
   */
  #run<T>(jobs: Job[], client: Client, begin: Begin<T>): T | Promise<T> {
    this.#startTurn();
    let steps: Generator<void, T> | undefined;
    if (jobs.length === 0 && this.#clock.now() < this.#until) {
      steps = begin();
      do {
        const { done, value } = steps.next();
        if (done) return value;
      } while (this.#clock.now() < this.#until);
    }
    return new Promise<T>((resolve, reject) => {
      jobs.push({ begin, steps, client, resolve, reject });
    });
  }

  #startTurn(): void {
    if (this.#isTurn) return;
    this.#isTurn = true;
    this.#until = this.#clock.now() + SHARE_MS;
    this.#clock.defer(() => this.#nextTurn());
  }

  #nextTurn(): void {
    this.#isTurn = false;
    if (this.#answers.length + this.#requests.length === 0) return;
    this.#startTurn();
    do {
      const jobs = this.#answers.length > 0 ? this.#answers : this.#requests;
      const job = jobs[0];
      if (job === undefined) return;
      if (doStep(job)) jobs.shift();
    } while (this.#clock.now() < this.#until);
  }
}

function doStep(job: Job): boolean {
  try {
    if (job.client.gone) throw new ClientGone();
    job.steps ??= job.begin();
    const { done, value } = job.steps.next();
    if (done) job.resolve(value as never);
    return done === true;
  } catch (error) {
    job.reject(error);
    return true;
  }
}

export const loopTurns = new LoopTurns();

export function finish<T>(steps: Generator<void, T>): T {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/** Bytes of a document from which it is read in turns of the event loop. A shorter one takes a millisecond at worst. */
export const LONG_DOCUMENT_BYTES = 16 * 1024;

/**
 * Reads a JSON document, a long one in turns of the event loop.
 *
 * @param use takes the document, whose packed arrays are valid until it returns
 * @returns what `use` returned; a promise when the document takes more than this turn
 * @throws as `parseJson` and `use` do, and ClientGone when the client leaves before its document is read.
 */
export function readJson<T>(
  client: Client,
  bytes: Uint8Array,
  use: (json: JsonValue) => T,
  mostNumbers = maxNumbers(DEFAULT_MAX_INPUT_SIZE),
): T | Promise<T> {
  if (bytes.length < LONG_DOCUMENT_BYTES) return use(parseJson(bytes, mostNumbers));
  return loopTurns.read(client, function* () {
    const value = use(yield* jsonSteps(bytes, mostNumbers));
    if (!loopTurns.hasRequests) endJsonSteps();
    return value;
  });
}
