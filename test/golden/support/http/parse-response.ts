import { gunzipSync, inflateSync } from "node:zlib";

/** An answer, its body de-chunked and decompressed. */
export interface HttpResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
  /** How the length of the body differs from the one in its headers. */
  readonly fault?: string;
}

interface Head {
  readonly status: number;
  readonly headers: Map<string, string>;
  /** Position where the body begins. */
  readonly bodyAt: number;
}

/**
 * Reads one answer from the bytes received so far; `undefined` while it is not complete. Interim answers (100
 * Continue) are skipped.
 * @param closed the server will send no more
 */
export function parseResponse(received: Buffer, method: string, closed: boolean): HttpResponse | undefined {
  let at = 0;
  for (;;) {
    const head = parseHead(received, at);
    if (head === undefined) return undefined;
    if (head.status >= 200) {
      const body = method === "HEAD" ? Buffer.alloc(0) : readBody(received, head, closed);
      if (body === undefined) return undefined;
      const fault = lengthFault(received, head, method);
      return {
        status: head.status,
        headers: head.headers,
        body: decompress(body, head.headers),
        ...(fault === undefined ? {} : { fault }),
      };
    }
    at = head.bodyAt;
  }
}

/** An answer has one end, and nothing comes after it. */
function lengthFault(received: Buffer, { headers, bodyAt }: Head, method: string): string | undefined {
  const length = headers.get("content-length");
  const isChunked = headers.has("transfer-encoding");
  if (isChunked && length !== undefined) return "both Content-Length and Transfer-Encoding";
  if (length === undefined) return undefined;
  const rest = received.length - bodyAt - (method === "HEAD" ? 0 : Number(length));
  return rest > 0 ? `${rest} bytes after the body of ${length}` : undefined;
}

function parseHead(received: Buffer, at: number): Head | undefined {
  const end = received.indexOf("\r\n\r\n", at, "latin1");
  if (end < 0) return undefined;
  const [statusLine = "", ...lines] = received.toString("latin1", at, end).split("\r\n");
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(statusLine)?.[1];
  if (status === undefined) throw new Error(`not an HTTP answer: ${statusLine}`);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return { status: Number(status), headers, bodyAt: end + 4 };
}

function readBody(received: Buffer, { headers, bodyAt }: Head, closed: boolean): Buffer | undefined {
  if (headers.get("transfer-encoding")?.toLowerCase() === "chunked") return dechunk(received, bodyAt);
  const length = headers.get("content-length");
  if (length === undefined) return closed ? received.subarray(bodyAt) : undefined;
  const end = bodyAt + Number(length);
  return received.length < end ? undefined : received.subarray(bodyAt, end);
}

function dechunk(received: Buffer, start: number): Buffer | undefined {
  const chunks: Buffer[] = [];
  let at = start;
  for (;;) {
    const lineEnd = received.indexOf("\r\n", at, "latin1");
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(received.toString("latin1", at, lineEnd), 16);
    const end = lineEnd + 2 + size;
    if (received.length < end + 2) return undefined;
    if (size === 0) return Buffer.concat(chunks);
    chunks.push(received.subarray(lineEnd + 2, end));
    at = end + 2;
  }
}

function decompress(body: Buffer, headers: ReadonlyMap<string, string>): Buffer {
  switch (headers.get("content-encoding")) {
    case "gzip":
      return gunzipSync(body);
    case "deflate":
      return inflateSync(body);
    default:
      return body;
  }
}
