import { onTestFinished } from "vitest";

/** An event of the dashboard's stream. */
export interface DashboardEvent {
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into any part of the JSON
  readonly data: any;
}

/** The events of a viewer, as they arrive. */
export class Events {
  readonly #left = new AbortController();
  readonly #events: AsyncGenerator<DashboardEvent>;

  private constructor(response: Response) {
    this.#events = read(response.body!);
  }

  /** Connects a viewer. It leaves at the end of the test, if not before. */
  static async open(url: string, headers: Record<string, string> = {}): Promise<Events> {
    const left = new AbortController();
    const response = await fetch(url, { headers, signal: left.signal });
    const events = new Events(response);
    events.#left.signal.addEventListener("abort", () => left.abort());
    onTestFinished(() => events.leave());
    return events;
  }

  leave(): void {
    this.#left.abort();
  }

  /** Reads until an event of this name satisfies `fits`. */
  async next(event: string, fits: (data: DashboardEvent["data"]) => boolean = () => true) {
    for (;;) {
      const { done, value } = await this.#events.next();
      if (done) throw new Error(`the stream ended before ${event}`);
      if (value.event === event && fits(value.data)) return value.data;
    }
  }

  /** Resolves when the server has ended the stream. */
  async ended(): Promise<void> {
    for await (const _ of this.#events);
  }
}

async function* read(body: ReadableStream<Uint8Array>): AsyncGenerator<DashboardEvent> {
  const decoder = new TextDecoder();
  let waiting = "";
  for await (const piece of body) {
    const blocks = (waiting + decoder.decode(piece, { stream: true })).split("\n\n");
    waiting = blocks.pop()!;
    for (const block of blocks) {
      const [event, data] = block.split("\n");
      yield { event: event!.slice("event: ".length), data: JSON.parse(data!.slice("data: ".length)) };
    }
  }
}
