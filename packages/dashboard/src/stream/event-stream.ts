const encoder = new TextEncoder();

/** Events that may wait for a slow viewer. */
const MOST_WAITING = 8;

/** A body of server-sent events for one viewer. */
export class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #onEnd: () => void = () => {};

  constructor() {
    this.body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        cancel: () => {
          this.#controller = undefined;
          this.#onEnd();
        },
      },
      new CountQueuingStrategy({ highWaterMark: MOST_WAITING }),
    );
  }

  /** Called once, when the viewer has left or the stream was ended. */
  set onEnd(listener: () => void) {
    this.#onEnd = listener;
  }

  /** False while the viewer has not read what was sent before. Events of a state are then left out. */
  get ready(): boolean {
    return (this.#controller?.desiredSize ?? 0) > 0;
  }

  /** Sends an event whose data is JSON text. */
  send(event: string, json: string): void {
    this.#controller?.enqueue(encoder.encode(`event: ${event}\ndata: ${json}\n\n`));
  }

  /** Ends the stream. Calling it twice is harmless. */
  end(): void {
    const controller = this.#controller;
    if (controller === undefined) return;
    this.#controller = undefined;
    controller.close();
    this.#onEnd();
  }
}
