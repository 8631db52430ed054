import type { RequestShare } from "@tritonjs/core/frontend";

/** One request as the routes see it. It is the same for every kind of server. */
export interface V2Request {
  readonly method: string;
  /** The path as sent: not decoded, without the query, and without the prefix of the routes. */
  readonly path: string;
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[];
  /** How the client reached the server, as far as the server can tell. */
  readonly scheme: "http" | "https";
  /** Address of the peer; undefined where the server does not report it. */
  readonly remoteAddress: string | undefined;
  /** `Access-Control-Allow-Origin`, where the application around the routes has already put it into the answer. */
  readonly grantedOrigin?: string | undefined;
  /** True when the client has left. */
  readonly gone: boolean;
  /**
   * True if the memory that `readBody` returns belongs to the request alone. It may then be freed when the model has
   * used it. @default false
   */
  readonly ownsBody?: boolean;
  /**
   * Reads the body into one piece of memory.
   *
   * @param memory share that counts the body as it arrives
   * @param tensorsAt offset of the tensors in the body. In a body of declared size this offset is aligned in memory for
   * all data types, so the tensors can be used in place. Undefined for a body of JSON alone.
   * @throws TritonError INVALID_ARG for a body over the limit, UNAVAILABLE for a body over the memory budget,
   * ClientGone when the client leaves.
   */
  readBody(memory: RequestShare, maxInputSize: number, tensorsAt?: number): Promise<Uint8Array>;
  /** Calls `listener` when the client leaves. The returned function removes the listener. */
  onGone(listener: () => void): () => void;
  /**
   * Calls `listener` when the operating system has the answer, or the client has left; at once on servers that cannot
   * tell. Call it just before the answer is sent.
   */
  onSent(listener: () => void): void;
  /** Reports an error to the host. The client does not see it. */
  report(error: unknown): void;
}

/** The value of a header; the first one if the header was sent several times. */
export function firstHeader({ rawHeaders }: V2Request, name: string): string | undefined {
  const wanted = name.toLowerCase();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i]!;
    if (sent.length === wanted.length && sent.toLowerCase() === wanted) return rawHeaders[i + 1];
  }
  return undefined;
}

/** All headers of a request, as an object of the web platform. */
export function headersOf({ rawHeaders }: V2Request): Headers {
  const headers = new Headers();
  for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i]!, rawHeaders[i + 1]!);
  return headers;
}
