import type { ControlAsk } from "../module/model-control.js";
import { type FromWorker, type ToWorker, unpackError } from "./messages.js";

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** The worker's side of a model's requests to the server's repository. */
export class AsksOfServer {
  readonly #waiting = new Map<number, Waiting>();
  #next = 0;

  constructor(private readonly post: (message: FromWorker) => void) {}

  ask(ask: ControlAsk): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const number = this.#next++;
      this.#waiting.set(number, { resolve, reject });
      this.post({ type: "ask", number, ask });
    });
  }

  answered({ number, value, error }: Extract<ToWorker, { type: "answered" }>): void {
    const waiting = this.#waiting.get(number);
    this.#waiting.delete(number);
    if (error === undefined) waiting?.resolve(value);
    else waiting?.reject(unpackError(error));
  }
}
