import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { FetchHandler } from "./fetch-handler.js";
import { nodeSides } from "./web-request.js";

const METHODS_WITHOUT_BODY = new Set(["GET", "HEAD"]);
/** Methods that a `Request` cannot have. */
const FORBIDDEN_METHODS = new Set(["CONNECT", "TRACE", "TRACK"]);

/** A listener for `node:http` and Express. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/**
 * Turns a {@link FetchHandler} into a listener of `node:http`, which also fits Express. The request is aborted when its
 * client leaves. A slow client slows the answer down.
 *
 * @example
 * ```ts
 * createServer(toNodeListener(fetchHandler(triton))).listen(8000);
 * ```
 */
export function toNodeListener(handler: FetchHandler): NodeListener {
  return async (incoming, outgoing) => {
    const left = new AbortController();
    outgoing.once("close", () => {
      if (!outgoing.writableFinished) left.abort();
    });
    if (FORBIDDEN_METHODS.has(incoming.method ?? "")) {
      outgoing.writeHead(405).end();
      return;
    }
    try {
      const request = toRequest(incoming, left.signal);
      const { remoteAddress } = incoming.socket;
      const grantedOrigin = outgoing.getHeader("access-control-allow-origin")?.toString();
      nodeSides.set(request, { remoteAddress, grantedOrigin });
      await write(await handler(request), outgoing, left.signal);
    } catch (error) {
      refuse(outgoing, error);
    }
    // Drops the remaining bytes of a rejected body.
    incoming.resume();
  };
}

function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers();
  for (let i = 0; i < incoming.rawHeaders.length; i += 2) {
    headers.append(incoming.rawHeaders[i]!, incoming.rawHeaders[i + 1]!);
  }
  const { method = "GET", headers: parsed } = incoming;
  // Express removes the path of the mount from `url`.
  const path = (incoming as { originalUrl?: string }).originalUrl ?? incoming.url ?? "/";
  const url = `http://${hostOf(parsed.host)}${path.startsWith("/") ? path : "/"}`;
  if (METHODS_WITHOUT_BODY.has(method)) return new Request(url, { method, headers, signal });
  const init = { method, headers, signal, body: bodyOf(incoming), duplex: "half" };
  return new Request(url, init as RequestInit);
}

/** The host only fills its place in the URL, so an invalid one does no harm. */
function hostOf(header: string | undefined): string {
  return header !== undefined && /^[\w.-]+(?::\d{1,5})?$/.test(header) ? header : "localhost";
}

function bodyOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  const chunks = incoming.iterator({ destroyOnReturn: false });
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await chunks.return?.();
    },
  });
}

/** Answers a request that the web platform cannot represent, or ends an answer that broke off. */
function refuse(outgoing: ServerResponse, error: unknown): void {
  if (outgoing.headersSent) outgoing.destroy(error as Error);
  else outgoing.writeHead(400, { "content-type": "application/json" }).end('{"error":"Bad Request"}');
}

async function write(response: Response, outgoing: ServerResponse, left: AbortSignal): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) {
    outgoing.end();
    return;
  }
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (!outgoing.write(value)) await once(outgoing, "drain", { signal: left });
    }
    outgoing.end();
  } catch (error) {
    if (!left.aborted) throw error;
    await reader.cancel();
  }
}
