/** Receives a response while it arrives. Byte ranges are valid only during the call. */
export interface ResponseListener {
  /** Status and headers: `headers` is the text of the header lines. Returns whether the body is wanted. */
  onHead(status: number, headers: string): boolean;
  /** Bytes of the body, if they are wanted. */
  onBody(bytes: Buffer): void;
  /** The response is complete. `keepsAlive` is false when the connection cannot carry another request. */
  onEnd(keepsAlive: boolean): void;
}

/** Where the reader is in a response. */
enum At {
  Head,
  Body,
  ChunkSize,
  Chunk,
  ChunkEnd,
  Trailers,
  UntilClose,
}

const LONGEST_HEAD = 256 * 1024;
const HEAD_END = Buffer.from("\r\n\r\n");
const CR = 13;
const LF = 10;

/** Reads the HTTP/1.1 responses of a connection, one after the other. */
export class HttpResponseReader {
  readonly #listener: ResponseListener;
  #at: At = At.Head;
  /** Bytes of an incomplete head or line. */
  #pending: Buffer | undefined;
  /** Bytes of the body or the chunk that are still to come. */
  #missing = 0;
  #wanted = false;
  #keepsAlive = true;

  constructor(listener: ResponseListener) {
    this.#listener = listener;
  }

  /** True between two responses. */
  get isIdle(): boolean {
    return this.#at === At.Head && this.#pending === undefined;
  }

  /** @throws Error for bytes that are not HTTP/1.1. */
  read(arrived: Buffer): void {
    let bytes = arrived;
    if (this.#pending !== undefined) {
      bytes = Buffer.concat([this.#pending, arrived]);
      this.#pending = undefined;
    }
    let from = 0;
    while (from < bytes.length) {
      const next = this.#step(bytes, from);
      if (next < 0) {
        // A copy: the bytes are those of the connection's buffer.
        this.#pending = Buffer.from(bytes.subarray(from));
        return;
      }
      from = next;
    }
  }

  /** The connection has closed. Returns false if that ends a response in its middle. */
  closed(): boolean {
    if (this.#at !== At.UntilClose) return this.isIdle;
    this.#end(false);
    return true;
  }

  /** Reads one part of the response. Returns the position after it, or -1 if the part is incomplete. */
  #step(bytes: Buffer, from: number): number {
    switch (this.#at) {
      case At.Head:
        return this.#head(bytes, from);
      case At.ChunkSize: {
        const end = lineEnd(bytes, from);
        if (end < 0) return -1;
        const line = bytes.toString("latin1", from, end - 2);
        const size = /^[0-9a-f]{1,12}/i.exec(line)?.[0];
        if (size === undefined) throw new Error(`expected the size of a chunk, got '${line.slice(0, 40)}'`);
        this.#missing = Number.parseInt(size, 16);
        this.#at = this.#missing === 0 ? At.Trailers : At.Chunk;
        return end;
      }
      case At.ChunkEnd:
        if (bytes.length - from < 2) return -1;
        this.#at = At.ChunkSize;
        return from + 2;
      case At.Trailers: {
        const end = lineEnd(bytes, from);
        if (end < 0) return -1;
        if (end === from + 2) this.#end(this.#keepsAlive);
        return end;
      }
      default:
        return this.#body(bytes, from);
    }
  }

  #body(bytes: Buffer, from: number): number {
    const length = Math.min(this.#missing, bytes.length - from);
    if (this.#wanted)
      this.#listener.onBody(
        from === 0 && length === bytes.length ? bytes : bytes.subarray(from, from + length),
      );
    this.#missing -= length;
    if (this.#missing === 0) {
      if (this.#at === At.Chunk) this.#at = At.ChunkEnd;
      else this.#end(this.#keepsAlive);
    }
    return from + length;
  }

  #head(bytes: Buffer, from: number): number {
    const end = bytes.indexOf(HEAD_END, from);
    if (end < 0) {
      if (bytes.length - from > LONGEST_HEAD)
        throw new Error(`the head is longer than ${LONGEST_HEAD} bytes`);
      return -1;
    }
    const head = bytes.toString("latin1", from, end + 2);
    const status = Number(head.slice(9, 12));
    if (!head.startsWith("HTTP/1.") || !(status >= 100))
      throw new Error(`expected an HTTP/1.1 response, got '${head.slice(0, 40).replace(/\r\n.*/s, "")}'`);
    const next = end + 4;
    // Interim responses precede the final one.
    if (status < 200) return next;
    this.#keepsAlive = head[7] === "1" && !/\r\nconnection: *close *\r\n/i.test(head);
    this.#wanted = this.#listener.onHead(status, head);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (status === 204 || status === 304) this.#end(this.#keepsAlive);
    else if (length === undefined && /\r\ntransfer-encoding:[^\r]*chunked/i.test(head))
      this.#at = At.ChunkSize;
    else if (length === undefined) {
      this.#at = At.UntilClose;
      this.#missing = Number.POSITIVE_INFINITY;
    } else if (length === "0") this.#end(this.#keepsAlive);
    else {
      this.#at = At.Body;
      this.#missing = Number(length);
    }
    return next;
  }

  #end(keepsAlive: boolean): void {
    this.#at = At.Head;
    this.#listener.onEnd(keepsAlive);
  }
}

/** Position after the next line break, or -1. */
function lineEnd(bytes: Buffer, from: number): number {
  const lineFeed = bytes.indexOf(LF, from);
  if (lineFeed < 0) return -1;
  if (bytes[lineFeed - 1] !== CR) throw new Error("expected a line that ends with CR LF");
  return lineFeed + 1;
}

/** The value of a header in the text of a head; empty without it. */
export function headerOf(head: string, name: string): string {
  return new RegExp(`\\r\\n${name}: *([^\\r]*)`, "i").exec(head)?.[1] ?? "";
}
