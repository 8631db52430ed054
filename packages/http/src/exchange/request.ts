import type { RequestShare } from "@tritonjs/core/frontend";

/** One request as the routes see it, whichever server received it. */
export interface V2Request {
  readonly method: string;
  /** As it was sent: nothing decoded, without the query, and without the prefix under which the routes stand. */
  readonly path: string;
  /** Names and values in turn, as they were sent. */
  readonly rawHeaders: readonly string[];
  /** True when the client has left. */
  readonly gone: boolean;
  /**
   * Reads the body into one piece of memory.
   *
   * @param memory share that counts the body as it comes
   * @param tensorsAt where in the body tensors begin, which in a body of declared size is aligned in memory for all
   * data types, so that they can be used where they are; undefined for a body that is nothing but JSON
   * @throws TritonError INVALID_ARG for a body over the limit, UNAVAILABLE for one that the memory has no room for,
   * ClientGone when the client leaves.
   */
  readBody(memory: RequestShare, maxInputSize: number, tensorsAt?: number): Promise<Uint8Array>;
  /** Calls back when the client leaves. What is returned takes the listener away. */
  onGone(listener: () => void): () => void;
  /**
   * Calls back when the answer is with the operating system, or the client gone; at once where nobody can tell. To be
   * called when the answer is about to be sent.
   */
  onSent(listener: () => void): void;
  /** Tells the host of an error that the client is not shown. */
  report(error: unknown): void;
}

/** The value of a header; of one that was sent several times the first. */
export function firstHeader({ rawHeaders }: V2Request, name: string): string | undefined {
  const wanted = name.toLowerCase();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i]!;
    if (sent.length === wanted.length && sent.toLowerCase() === wanted) return rawHeaders[i + 1];
  }
  return undefined;
}
