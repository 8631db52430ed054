import type { IncomingMessage, ServerResponse } from "node:http";
import type { RequestShare } from "@tritonjs/core/frontend";
import type { V2Request } from "../exchange/request.js";
import { readMessage } from "./read-message.js";

/** A request that a Node server received. Its body has not been read yet. */
export class NodeV2Request implements V2Request {
  readonly ownsBody = true;
  readonly method: string;
  readonly path: string;
  readonly rawHeaders: readonly string[];
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse;

  /** @param prefix prefix of all paths */
  constructor(incoming: IncomingMessage, outgoing: ServerResponse, prefix: string) {
    this.#incoming = incoming;
    this.#outgoing = outgoing;
    this.method = incoming.method ?? "";
    this.path = pathOf(incoming.url ?? "", prefix);
    this.rawHeaders = incoming.rawHeaders;
  }

  get scheme(): "http" | "https" {
    return "encrypted" in this.#incoming.socket ? "https" : "http";
  }

  get remoteAddress(): string | undefined {
    return this.#incoming.socket.remoteAddress;
  }

  /** An application sets it before it calls the routes; a server of ours never does. */
  get grantedOrigin(): string | undefined {
    return this.#outgoing.getHeader("access-control-allow-origin")?.toString();
  }

  get gone(): boolean {
    return this.#outgoing.destroyed;
  }

  readBody(memory: RequestShare, maxInputSize: number, tensorsAt?: number): Promise<Uint8Array> {
    return readMessage(this.#incoming, memory, maxInputSize, tensorsAt);
  }

  onGone(listener: () => void): () => void {
    // Most requests are answered. A listener without effect costs less than removing it.
    let waiting = true;
    this.#outgoing.on("close", () => {
      if (waiting) listener();
    });
    return () => {
      waiting = false;
    };
  }

  onSent(listener: () => void): void {
    if (this.gone) listener();
    else this.#outgoing.once("close", listener);
  }

  /** A server without a logger has no place for reports. */
  report(_error: unknown): void {}
}

function pathOf(url: string, prefix: string): string {
  const query = url.indexOf("?");
  let path = query < 0 ? url : url.slice(0, query);
  // Proxies may put the server's name into the path.
  if (path[0] !== "/") path = path.replace(/^https?:\/\/[^/]*/i, "");
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}
