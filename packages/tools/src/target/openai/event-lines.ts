const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** Takes the data of server-sent events out of the bytes of a stream. */
export class EventLines {
  #pending: Buffer | undefined;
  #data = "";

  /** Returns the data of the events that are complete. */
  add(bytes: Buffer): string[] {
    const text = this.#pending === undefined ? bytes : Buffer.concat([this.#pending, bytes]);
    this.#pending = undefined;
    const events: string[] = [];
    let from = 0;
    for (;;) {
      const end = text.indexOf(LINE_FEED, from);
      if (end < 0) break;
      const to = text[end - 1] === CARRIAGE_RETURN && end > from ? end - 1 : end;
      this.#line(text.toString("utf8", from, to), events);
      from = end + 1;
    }
    if (from < text.length) this.#pending = Buffer.from(text.subarray(from));
    return events;
  }

  #line(line: string, events: string[]): void {
    if (line === "") {
      if (this.#data !== "") events.push(this.#data);
      this.#data = "";
    } else if (line.startsWith("data:")) {
      const value = line.slice(line[5] === " " ? 6 : 5);
      this.#data = this.#data === "" ? value : `${this.#data}\n${value}`;
    }
  }
}
