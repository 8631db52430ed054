import { ListedServer } from "./listed-server.js";

/** Servers by address, and the choice among them: fewest calls in flight, then in turn. */
export class ServerList<C extends { close(): void }> {
  #servers: ListedServer<C>[] = [];
  #turn = 0;
  readonly #open: (url: string) => C;

  /** @param open opens the carrier of a server; connections are opened by calls */
  constructor(open: (url: string) => C) {
    this.#open = open;
  }

  get servers(): readonly ListedServer<C>[] {
    return this.#servers;
  }

  /** Adds and removes servers. A removed server is closed after its calls. */
  update(urls: readonly string[]): void {
    if (urls.length === this.#servers.length && this.#servers.every(({ url }, i) => url === urls[i])) return;
    const known = new Map(this.#servers.map((server) => [server.url, server]));
    this.#servers = urls.map((url) => known.get(url) ?? new ListedServer(url, this.#open(url)));
    for (const server of known.values()) {
      if (this.#servers.includes(server)) continue;
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
    const { length } = this.#servers;
    this.#turn = (this.#turn + 1) % Math.max(1, length);
    let best: ListedServer<C> | undefined;
    for (let i = 0; i < length; i++) {
      const server = this.#servers[(this.#turn + i) % length]!;
      if (tried?.has(server) || !server.accepts(now)) continue;
      if (best === undefined || server.outstanding < best.outstanding) best = server;
    }
    return best ?? this.#soonest(tried);
  }

  /** Chooses the first server of the list that is not left out. */
  first(now: number, tried?: ReadonlySet<ListedServer<C>>): ListedServer<C> | undefined {
    const open = this.#servers.find((server) => !tried?.has(server) && server.accepts(now));
    return open ?? this.#soonest(tried);
  }

  /** Marks the start of a call. */
  began(server: ListedServer<C>): void {
    server.outstanding++;
  }

  /** Marks the end of a call. */
  ended(server: ListedServer<C>): void {
    server.outstanding--;
    if (server.removed && server.outstanding === 0) server.carrier.close();
  }

  close(): void {
    for (const { carrier } of this.#servers) carrier.close();
  }

  #soonest(tried: ReadonlySet<ListedServer<C>> | undefined): ListedServer<C> | undefined {
    const left = this.#servers.filter((server) => !tried?.has(server));
    return left.reduce<ListedServer<C> | undefined>(
      (one, other) => (one === undefined || other.outUntil < one.outUntil ? other : one),
      undefined,
    );
  }
}
