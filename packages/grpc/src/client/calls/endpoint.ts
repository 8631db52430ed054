import { inferencePath } from "../../handlers/paths.js";
import type { MessageDecoder, MessageEncoder } from "../../proto/codec.js";
import { Channel, type RemoteMethod } from "../channel/channel.js";
import type { ClientOptions } from "../client-options.js";

/** Whether a call may be made twice: it may when it only reads. */
export type Effect = "reads" | "changes";

/** A server and how to call it: the ground on which the calls of the client stand. */
export abstract class Endpoint {
  protected readonly channel: Channel;
  protected readonly options: ClientOptions;

  /**
   * @param url where the server is: `localhost:8001`, `grpcs://example.org:443`
   * @throws TritonError INVALID_ARG for what is no address, and for certificates that are none.
   */
  constructor(url: string, options: ClientOptions = {}) {
    this.channel = new Channel(url, options);
    this.options = options;
  }

  /** Ends the calls in flight with CANCELLED. Later ones fail with UNAVAILABLE. */
  close(): void {
    this.channel.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** A method of the inference service by its name. */
export function method<Q, R>(
  name: string,
  effect: Effect,
  request: MessageEncoder<Q>,
  response: MessageDecoder<R>,
): RemoteMethod<Q, R> {
  return { path: inferencePath(name), request, response, idempotent: effect === "reads" };
}
