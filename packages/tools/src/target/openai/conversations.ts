import type { LoadRequest } from "../load-request.js";
import type { RequestBytes } from "../wire/stamped-requests.js";

/** What a thread needs to build the requests of conversations. It survives structured cloning. */
export interface ConversationPlan {
  /** Request line and headers without `content-length`, to the end of the last header. */
  readonly head: string;
  /** Bodies of the turns by payload: JSON text. */
  readonly bodies: readonly string[];
}

/** A message of a turn of a chat. */
export type TurnMessage = Readonly<Record<string, unknown>>;

/**
 * Makes the requests of sessions. A turn of a chat carries the messages and the answers of the turns before, and then
 * its own messages, as a chat client sends them. Turns without messages are sent as they are.
 */
export class Conversations implements RequestBytes {
  readonly prefix = undefined;
  rest: Buffer = Buffer.alloc(0);
  readonly #plan: ConversationPlan;
  /** Messages so far, by the id of the session. */
  readonly #histories = new Map<number, TurnMessage[]>();

  constructor(plan: ConversationPlan) {
    this.#plan = plan;
  }

  stamp({ payload, sequenceId, sequenceStart, sequenceEnd }: LoadRequest): void {
    const { head, bodies } = this.#plan;
    const body = JSON.parse(bodies[payload]!) as { readonly messages?: unknown };
    let text = bodies[payload]!;
    if (Array.isArray(body.messages)) {
      const before = sequenceStart ? [] : (this.#histories.get(sequenceId) ?? []);
      const messages = [...before, ...(body.messages as TurnMessage[])];
      if (sequenceEnd) this.#histories.delete(sequenceId);
      else this.#histories.set(sequenceId, messages);
      if (before.length > 0) text = JSON.stringify({ ...body, messages });
    }
    this.rest = Buffer.from(`${head}content-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  /** Adds the answer to a turn. */
  answered({ sequenceId }: LoadRequest, message: TurnMessage): void {
    this.#histories.get(sequenceId)?.push(message);
  }
}
