/** A longer line is written in pieces. */
const MOST_BYTES = 8192;
const LINE_FEED = 10;

/** Divides what a process prints into lines. Holds no more than one piece of one line. */
export class OutputLines {
  #rest = Buffer.alloc(0);

  constructor(private readonly write: (line: string) => void) {}

  push(chunk: Buffer): void {
    let data = this.#rest.byteLength === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const end = data.indexOf(LINE_FEED);
      const size = end < 0 ? data.byteLength : end;
      if (size > MOST_BYTES) {
        this.#line(data.subarray(0, MOST_BYTES));
        data = data.subarray(MOST_BYTES);
      } else if (end < 0) {
        break;
      } else {
        this.#line(data.subarray(0, end));
        data = data.subarray(end + 1);
      }
    }
    // A copy: the chunk is not kept for its end.
    this.#rest = Buffer.from(data);
  }

  /** There is no more to come. */
  end(): void {
    if (this.#rest.byteLength > 0) this.#line(this.#rest);
    this.#rest = Buffer.alloc(0);
  }

  #line(bytes: Buffer): void {
    const line = bytes.toString("utf8");
    this.write(line.endsWith("\r") ? line.slice(0, -1) : line);
  }
}
