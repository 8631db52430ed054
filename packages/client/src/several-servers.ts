import { type RequestSequence, TritonError } from "@tritonjs/protocol";
import { type Attempt, type Carrier, type OutgoingCall, type RetryPolicy, retryPolicy } from "./caller.js";
import type { CallDeadline } from "./deadline.js";
import type { CommonClientOptions } from "./options.js";
import { areSeveral, listOf, ServerAddresses } from "./server-addresses.js";

/** A request whose response body may be read after the attempt. */
interface MaybeStreamed {
  readonly streamed?: boolean;
}

/**
 * A carrier over several servers. An inference goes to the server with the fewest calls in flight. All requests of a
 * sequence go to one server. Any other call goes to the first server of the list that is not left out. A call that may
 * be repeated is retried on the next server at once.
 */
export class SeveralServers<Q extends OutgoingCall & MaybeStreamed, A, C extends Carrier<Q, A>>
  implements Carrier<Q, A>
{
  readonly #addresses: ServerAddresses;
  readonly #list: ServerList<C>;
  readonly #pins = new SequencePins<C>();
  readonly #retry: RetryPolicy;

  constructor(addresses: ServerAddresses, open: (url: string) => C, options: CommonClientOptions) {
    this.#addresses = addresses;
    this.#list = new ServerList(open);
    this.#retry = retryPolicy(options);
    this.#list.update(addresses.current);
  }

  async attempt(request: Q, deadline: CallDeadline): Promise<Attempt<A>> {
    const unknown = await this.#lookUp();
    if (unknown !== undefined) return { error: unknown, failure: "not-sent" };
    let tried: Set<ListedServer<C>> | undefined;
    for (;;) {
      const server = this.#choose(request, tried)!;
      const outcome = await this.#attemptAt(server, request, deadline);
      if (outcome.failure === undefined || deadline.fault !== undefined) return outcome;
      if (!this.#mayGoElsewhere(outcome, request)) return outcome;
      tried ??= new Set();
      tried.add(server);
      if (this.#choose(request, tried) === undefined) return outcome;
    }
  }

  /** Chooses a server for a stream and marks its start. The caller reports its end. */
  async beginStream(): Promise<{ carrier: C; ended(reached: boolean): void }> {
    const unknown = await this.#lookUp();
    if (unknown !== undefined) throw unknown;
    const server = this.#list.leastLoaded(performance.now())!;
    this.#list.began(server);
    const ended = (reached: boolean): void => {
      if (reached) server.worked();
      else server.failed(performance.now());
      this.#list.ended(server);
    };
    return { carrier: server.carrier, ended };
  }

  close(): void {
    this.#list.close();
  }

  /** Returns the error if no address is known. Once one is known, a slow lookup does not delay calls. */
  async #lookUp(): Promise<TritonError | undefined> {
    const running = this.#addresses.refresh(performance.now());
    if (running === undefined) return undefined;
    const updated = running.then(
      () => this.#list.update(this.#addresses.current),
      (thrown: unknown) => TritonError.from(thrown),
    );
    if (this.#list.servers.length > 0) return undefined;
    return (await updated) ?? undefined;
  }

  #choose(
    { balanced, sequence }: Q,
    tried: ReadonlySet<ListedServer<C>> | undefined,
  ): ListedServer<C> | undefined {
    const now = performance.now();
    if (sequence !== undefined) return this.#pins.serverOf(sequence, this.#list.servers, now, tried);
    return balanced ? this.#list.leastLoaded(now, tried) : this.#list.first(now, tried);
  }

  async #attemptAt(server: ListedServer<C>, request: Q, deadline: CallDeadline): Promise<Attempt<A>> {
    this.#list.began(server);
    let streams = false;
    try {
      const outcome = await server.carrier.attempt(request, deadline);
      this.#observe(server, outcome, deadline);
      if (request.sequence !== undefined && outcome.failure === undefined)
        this.#pins.went(request.sequence, server);
      streams = request.streamed === true && "answer" in outcome && outcome.failure === undefined;
      return outcome;
    } finally {
      if (streams && deadline.fault === undefined) deadline.onEnd = () => this.#list.ended(server);
      else this.#list.ended(server);
    }
  }

  #observe(server: ListedServer<C>, { failure, retryAfterMs }: Attempt<A>, deadline: CallDeadline): void {
    const now = performance.now();
    if (failure !== undefined && deadline.fault === undefined) server.failed(now, retryAfterMs);
    else if (deadline.timedOut) server.failed(now);
    else if (failure === undefined) server.worked();
  }

  #mayGoElsewhere({ failure, retryAfterMs }: Attempt<A>, { idempotent, sequence }: Q): boolean {
    if (failure === "not-sent") return sequence === undefined || sequence.start === true;
    if (sequence !== undefined || this.#retry.retries === 0) return false;
    if (failure === "lost") return idempotent;
    return this.#retry.unavailable && retryAfterMs !== Number.POSITIVE_INFINITY;
  }
}

/** Opens the carrier of one server, or of several. */
export function openServers<Q extends OutgoingCall & MaybeStreamed, A, C extends Carrier<Q, A>>(
  urls: string | readonly string[],
  options: CommonClientOptions,
  defaultPort: number,
  open: (url: string) => C,
): C | SeveralServers<Q, A, C> {
  if (!areSeveral(urls)) return open(listOf(urls)[0]!);
  return new SeveralServers(new ServerAddresses(urls, options, defaultPort), open, options);
}

/** Servers by address, and the choice among them: fewest calls in flight, then in turn. */
class ServerList<C extends { close(): void }> {
  servers: readonly ListedServer<C>[] = [];
  #turn = 0;

  /** @param open opens the carrier of a server; connections are opened by calls */
  constructor(private readonly open: (url: string) => C) {}

  /** Adds and removes servers. A removed server is closed after its calls. */
  update(urls: readonly string[]): void {
    if (urls.length === this.servers.length && this.servers.every(({ url }, i) => url === urls[i])) return;
    const known = new Map(this.servers.map((server) => [server.url, server]));
    this.servers = urls.map((url) => known.get(url) ?? new ListedServer(url, this.open(url)));
    for (const server of known.values()) {
      if (this.servers.includes(server)) continue;
      server.removed = true;
      if (server.outstanding === 0) server.carrier.close();
    }
  }

  /**
   * Chooses a server among those with the fewest calls in flight. If all are left out, it is the one whose pause ends
   * first, because a call that fails is better than a call that is not tried.
   *
   * @param tried servers that the call has tried
   * @returns undefined if all have been tried
   */
  leastLoaded(now: number, tried?: ReadonlySet<ListedServer<C>>): ListedServer<C> | undefined {
    const { length } = this.servers;
    this.#turn = (this.#turn + 1) % Math.max(1, length);
    let best: ListedServer<C> | undefined;
    for (let i = 0; i < length; i++) {
      const server = this.servers[(this.#turn + i) % length]!;
      if (tried?.has(server) || !server.accepts(now)) continue;
      if (best === undefined || server.outstanding < best.outstanding) best = server;
    }
    return best ?? this.#soonest(tried);
  }

  /** Chooses the first server of the list that is not left out. */
  first(now: number, tried?: ReadonlySet<ListedServer<C>>): ListedServer<C> | undefined {
    const open = this.servers.find((server) => !tried?.has(server) && server.accepts(now));
    return open ?? this.#soonest(tried);
  }

  began(server: ListedServer<C>): void {
    server.outstanding++;
  }

  ended(server: ListedServer<C>): void {
    server.outstanding--;
    if (server.removed && server.outstanding === 0) server.carrier.close();
  }

  close(): void {
    for (const { carrier } of this.servers) carrier.close();
  }

  #soonest(tried: ReadonlySet<ListedServer<C>> | undefined): ListedServer<C> | undefined {
    const left = this.servers.filter((server) => !tried?.has(server));
    return left.reduce<ListedServer<C> | undefined>(
      (one, other) => (one === undefined || other.outUntil < one.outUntil ? other : one),
      undefined,
    );
  }
}

/** Pause after the first failure: long enough to spare a starting server, short enough to use it soon after. */
const FIRST_PAUSE_MS = 100;

/** Longest pause between two trials of a server that stays away. */
const LONGEST_PAUSE_MS = 10_000;

/** Returns the pause after a further failure: twice `pauseMs`, at most `longestMs`. */
export function nextPause(pauseMs: number, longestMs = LONGEST_PAUSE_MS): number {
  return pauseMs === 0 ? FIRST_PAUSE_MS : Math.min(pauseMs * 2, longestMs);
}

/**
 * One of several servers: its calls in flight, and whether it is left out. After a failure it gets no calls for a pause
 * that doubles with each further failure. After the pause it gets one call as a trial.
 */
class ListedServer<C> {
  outstanding = 0;
  /** True for a server that is not in the list any more. */
  removed = false;
  #pauseMs = 0;
  /** Time until which it is left out. */
  outUntil = Number.NEGATIVE_INFINITY;

  constructor(
    readonly url: string,
    readonly carrier: C,
  ) {}

  /** True if it may get a call. */
  accepts(now: number): boolean {
    return this.#pauseMs === 0 || (now >= this.outUntil && this.outstanding === 0);
  }

  /** Leaves it out. Failures of calls that were in flight together count once. */
  failed(now: number, atLeastMs = 0): void {
    if (now < this.outUntil) return;
    this.#pauseMs = nextPause(this.#pauseMs);
    this.outUntil = now + Math.max(this.#pauseMs, Number.isFinite(atLeastMs) ? atLeastMs : 0);
  }

  worked(): void {
    this.#pauseMs = 0;
    this.outUntil = Number.NEGATIVE_INFINITY;
  }
}

/** Largest number of remembered sequences. Beyond it the oldest is evicted, and the hash of its id alone decides. */
const MOST_PINS = 65_536;

/** The servers of sequences. A new one goes where its id prefers, so clients with the same servers agree. */
class SequencePins<C> {
  readonly #pins = new Map<RequestSequence["id"], ListedServer<C>>();

  /** Server of a request of a sequence; undefined for a request that has tried it already. */
  serverOf(
    { id, start }: RequestSequence,
    servers: readonly ListedServer<C>[],
    now: number,
    tried?: ReadonlySet<ListedServer<C>>,
  ): ListedServer<C> | undefined {
    const pinned = start ? undefined : this.#pins.get(id);
    if (pinned !== undefined && !pinned.removed) return tried?.has(pinned) ? undefined : pinned;
    const left = servers.filter((server) => !tried?.has(server));
    const open = left.filter((server) => server.outUntil <= now);
    return preferred(id, start && open.length > 0 ? open : left);
  }

  /** Records that a server has accepted a request of a sequence. */
  went({ id, end }: RequestSequence, server: ListedServer<C>): void {
    this.#pins.delete(id);
    if (end) return;
    this.#pins.set(id, server);
    if (this.#pins.size > MOST_PINS) this.#pins.delete(this.#pins.keys().next().value!);
  }
}

/** The server with the highest hash of address and id (rendezvous hashing): a changed list moves few sequences. */
function preferred<C>(
  id: RequestSequence["id"],
  servers: readonly ListedServer<C>[],
): ListedServer<C> | undefined {
  let best: ListedServer<C> | undefined;
  let highest = -1;
  for (const server of servers) {
    const rank = hash(`${id}@${server.url}`);
    if (rank > highest) [best, highest] = [server, rank];
  }
  return best;
}

/** FNV-1a with a final mix, as its low bits alone differ too little between similar texts. */
function hash(text: string): number {
  let state = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) state = Math.imul(state ^ text.charCodeAt(i), 0x01000193);
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
  return (state ^ (state >>> 16)) >>> 0;
}
