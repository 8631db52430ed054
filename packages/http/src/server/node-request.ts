import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { pipeline, Readable } from "node:stream";
import type { RequestShare } from "@tritonjs/core/frontend";
import { freeMemory, freeWhenSent } from "@tritonjs/core/internal";
import { BodyBuffer, ClientGone, latin1Text, type V2Request } from "../exchange/request.js";
import { byteLength, isWhole, type V2Response } from "../exchange/response.js";
import type { V2Handler } from "../routes/v2-handler.js";

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

const NO_BYTES = new Uint8Array(0);

/** Bytes of a chunk from which freeing it costs less than leaving it to the garbage collector. */
const WORTH_FREEING_BYTES = 16 * 1024;

/**
 * Reads the body of a message of Node. After a body is rejected, its remaining bytes are read and dropped, so that the
 * connection can be used again.
 *
 * @param memory share that counts the body as it arrives
 * @throws TritonError INVALID_ARG for a body over the limit, UNAVAILABLE for a body over the memory budget, ClientGone
 * when the client leaves.
 */
export function readMessage(
  message: IncomingMessage,
  memory: RequestShare,
  maxInputSize: number,
  tensorsAt: number | undefined,
): Promise<Uint8Array> {
  const header = message.headers["content-length"];
  const declared = header === undefined ? undefined : Number(header);
  if (declared === 0 || message.readableEnded) return Promise.resolve(NO_BYTES);
  if (message.destroyed) return Promise.reject(new ClientGone());
  return new Promise((resolve, reject) => {
    const body = new BodyBuffer(maxInputSize, declared, tensorsAt);
    if (declared !== undefined) memory.expect(declared);
    let settled = false;
    const fail = (error: unknown): void => {
      settled = true;
      message.resume();
      reject(error);
    };
    message.on("data", (chunk: Buffer) => {
      if (settled) return;
      try {
        memory.take(chunk.length);
        body.add(chunk, true);
        if (isOurs(chunk, message)) freeMemory(chunk.buffer as ArrayBuffer);
      } catch (thrown) {
        fail(thrown);
      }
    });
    message.on("end", () => {
      settled = true;
      resolve(body.bytes());
    });
    const leave = (cause?: unknown): void => {
      if (!settled) fail(new ClientGone(cause));
    };
    message.on("error", leave);
    message.on("close", leave);
  });
}

/** True for a chunk with memory of its own, as node:http makes it, that no other listener sees. The body has a copy. */
function isOurs({ length, buffer }: Buffer, message: IncomingMessage): boolean {
  return length >= WORTH_FREEING_BYTES && buffer.byteLength === length && message.listenerCount("data") === 1;
}

/** Answers the requests of a Node server directly, without fastify. */
export function answerDirectly(handler: V2Handler): RequestListener {
  return async (incoming, outgoing) => {
    try {
      const response = await handler(new NodeV2Request(incoming, outgoing, ""));
      if (response !== undefined) sendAnswer(outgoing, response);
    } catch (error) {
      outgoing.destroy(error as Error);
    }
  };
}

/** Bytes up to which a body is sent in one piece with its headers. */
const MAX_TEXT = 4096;

/** Sends an answer with one system call, unless parts of it are still to come. */
function sendAnswer(outgoing: ServerResponse, { status, headers, body }: V2Response): void {
  const lines: string[] = [];
  for (const name in headers) lines.push(name, headers[name]!);
  if (!(body instanceof Uint8Array) && !isWhole(body)) {
    outgoing.writeHead(status, lines);
    // If the client leaves, the body ends. If the body breaks off, the connection ends.
    pipeline(Readable.from(body, { objectMode: false }), outgoing, () => {});
    return;
  }
  const pieces = isWhole(body) ? body : [body];
  const length = byteLength(pieces);
  lines.push("content-length", String(length));
  outgoing.writeHead(status, lines);
  if (length <= MAX_TEXT) {
    outgoing.end(latin1(pieces), "latin1");
  } else {
    outgoing.cork();
    for (const piece of pieces) outgoing.write(piece, freeWhenSent(piece));
    outgoing.end();
  }
}

/** Pieces as text in which each character is a byte: Node appends text to the headers, and sends both in one piece. */
function latin1(pieces: readonly Uint8Array[]): string {
  let text = "";
  for (const piece of pieces) text += latin1Text(piece);
  return text;
}
