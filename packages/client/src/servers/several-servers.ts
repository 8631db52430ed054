import { TritonError } from "@tritonjs/protocol";
import type { Attempt, Carrier, OutgoingCall } from "../call/carrier.js";
import type { CallDeadline } from "../call/deadline.js";
import { type RetryPolicy, retryPolicy } from "../call/retry.js";
import type { CommonClientOptions } from "../options/client-options.js";
import type { ListedServer } from "./listed-server.js";
import { SequencePins } from "./sequence-pins.js";
import type { ServerAddresses } from "./server-addresses.js";
import { ServerList } from "./server-list.js";

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
  readonly #noAnswer: (error: TritonError) => Attempt<A>;

  constructor(addresses: ServerAddresses, open: (url: string) => C, options: CommonClientOptions) {
    this.#addresses = addresses;
    this.#list = new ServerList(open);
    this.#retry = retryPolicy(options);
    this.#noAnswer = (error) => ({ error, failure: "not-sent" });
    this.#list.update(addresses.current);
  }

  async attempt(request: Q, deadline: CallDeadline): Promise<Attempt<A>> {
    const unknown = await this.#lookUp();
    if (unknown !== undefined) return this.#noAnswer(unknown);
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

  /**
   * Chooses a server for a stream and marks the start of it. The caller reports its end.
   *
   * @throws TritonError UNAVAILABLE when no server is known.
   */
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
