import type { RequestSequence } from "@tritonjs/protocol";
import type { ListedServer } from "./listed-server.js";

/** Largest number of remembered sequences. Beyond it the oldest is evicted, and the hash of its id alone decides. */
const MOST_PINS = 65_536;

/**
 * The servers of sequences. A sequence begins on the server that its id prefers among those that are not left out, so
 * clients with the same servers agree. All its requests go there.
 */
export class SequencePins<C> {
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

/**
 * Returns the server with the highest hash of address and id (rendezvous hashing): a changed list moves few sequences.
 */
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
