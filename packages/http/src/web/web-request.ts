import type { RequestShare } from "@tritonjs/core/frontend";
import { BodyBuffer, ClientGone } from "../exchange/body-buffer.js";
import type { V2Request } from "../exchange/request.js";

/** What Node's server knows of a request, and the web platform has no place for. */
interface NodeSide {
  /** Address of the peer. */
  readonly remoteAddress: string | undefined;
  /** `Access-Control-Allow-Origin`, where the application has already put it into the answer. */
  readonly grantedOrigin: string | undefined;
}

/** The Node side of requests that come from a server of Node. */
export const nodeSides = new WeakMap<Request, NodeSide>();

const NO_BYTES = new Uint8Array(0);

/** A request of the web platform. Its header names are in lower case, and dots in its path are already resolved. */
export class WebV2Request implements V2Request {
  readonly ownsBody = true;
  readonly method: string;
  readonly path: string;
  readonly report: (error: unknown) => void;
  readonly #request: Request;
  #rawHeaders: readonly string[] | undefined;

  constructor(request: Request, prefix: string, report: (error: unknown) => void) {
    this.#request = request;
    this.method = request.method;
    this.path = pathOf(request.url, prefix);
    this.report = report;
  }

  get rawHeaders(): readonly string[] {
    this.#rawHeaders ??= [...this.#request.headers].flat();
    return this.#rawHeaders;
  }

  get scheme(): "http" | "https" {
    return this.#request.url.startsWith("https:") ? "https" : "http";
  }

  get remoteAddress(): string | undefined {
    return nodeSides.get(this.#request)?.remoteAddress;
  }

  get grantedOrigin(): string | undefined {
    return nodeSides.get(this.#request)?.grantedOrigin;
  }

  get gone(): boolean {
    return this.#request.signal.aborted;
  }

  async readBody(memory: RequestShare, maxInputSize: number, tensorsAt?: number): Promise<Uint8Array> {
    const { body, headers } = this.#request;
    if (body === null) return NO_BYTES;
    const declared = headers.get("content-length");
    const buffer = new BodyBuffer(maxInputSize, declared === null ? undefined : Number(declared), tensorsAt);
    if (declared !== null) memory.expect(Number(declared));
    const reader = body.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read().catch((cause: unknown) => {
          throw new ClientGone(cause);
        });
        if (done) return buffer.bytes();
        memory.take(value.length);
        buffer.add(value);
      }
    } finally {
      // The host owns the connection, and handles the rest of a rejected body.
      reader.releaseLock();
    }
  }

  onGone(listener: () => void): () => void {
    const { signal } = this.#request;
    signal.addEventListener("abort", listener, { once: true });
    return () => signal.removeEventListener("abort", listener);
  }

  /** The web platform does not report when an answer has been sent. */
  onSent(listener: () => void): void {
    queueMicrotask(listener);
  }
}

function pathOf(url: string, prefix: string): string {
  const from = url.indexOf("/", url.indexOf("://") + 3);
  const end = url.slice(from).search(/[?#]/);
  const path = end < 0 ? url.slice(from) : url.slice(from, from + end);
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}
