/**
 * The data of server-sent events. Lines end with CR, LF or both; lines of `data` are joined; comments and other fields
 * are passed over. An event that the end of the stream cuts off is still given: its reader sees what it lacks.
 */
export async function* readEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
  const lines = new LineSplitter();
  let data: string[] = [];
  for await (const line of lines.split(chunks)) {
    if (line === "") {
      if (data.length > 0) yield data.join("\n");
      data = [];
    } else if (line.startsWith("data:")) {
      data.push(line.slice(line[5] === " " ? 6 : 5));
    } else if (line === "data") {
      data.push("");
    }
  }
  if (data.length > 0) yield data.join("\n");
}

const LINE_END = /\r\n|\r|\n/;

/** Cuts text that comes in chunks into lines. A line is only joined when it is complete. */
class LineSplitter {
  readonly #decoder = new TextDecoder();
  #parts: string[] = [];
  /** The last chunk ended with CR: an LF at the start of the next belongs to it. */
  #skipLineFeed = false;

  async *split(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
    for await (const chunk of chunks) yield* this.#take(this.#decoder.decode(chunk, { stream: true }));
    yield* this.#take(this.#decoder.decode());
    if (this.#parts.length > 0) yield this.#parts.join("");
  }

  *#take(text: string): Generator<string, void, void> {
    if (text === "") return;
    const rest = this.#skipLineFeed && text.startsWith("\n") ? text.slice(1) : text;
    this.#skipLineFeed = text.endsWith("\r");
    const pieces = rest.split(LINE_END);
    for (const piece of pieces.slice(0, -1)) {
      this.#parts.push(piece);
      yield this.#parts.join("");
      this.#parts = [];
    }
    const last = pieces.at(-1)!;
    if (last !== "") this.#parts.push(last);
  }
}
