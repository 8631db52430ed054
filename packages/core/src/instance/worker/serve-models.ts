import { TritonError } from "@tritonjs/protocol";
import type { ControlAsk } from "../module/model-control.js";
import type { WorkerPort } from "./channel.js";
import { type FromWorker, packError, type ToWorker, unpackError, type WorkerInit } from "./messages.js";
import type { CallsToModels } from "./model-call-client.js";
import { type MessageToModel, ServedModel } from "./served-model.js";
import type { OpenModel, WorkerEntry, WorkerHost } from "./worker-model.js";

/**
 * Serves models as the messages of a worker's port ask: opens or loads a model, then runs one batch at a time. A worker
 * that is kept serves another model after it has closed the first.
 */
export function serveModels(port: WorkerPort): void {
  let place = new ModelPlace(port);
  port.onMessage((message) => {
    if (message.type !== "stop") {
      place.take(message);
      return;
    }
    const { keep = false } = message;
    void place.close(keep).then(() => {
      if (!keep) {
        port.close();
        return;
      }
      place = new ModelPlace(port);
      port.post({ type: "free" }, []);
    });
  });
}

/** One model of a worker, from the time before it is open. */
class ModelPlace {
  readonly #asks = new AsksOfServer((message) => this.port.post(message, []));
  /** Messages that arrived before the model was loaded. */
  readonly #early: MessageToModel[] = [];
  /** The opening or loading in progress; settled if there is none. */
  #starts: Promise<void> = Promise.resolve();
  #opened: OpenModel | undefined;
  #served: ServedModel | undefined;
  #failed = false;

  constructor(private readonly port: WorkerPort) {}

  take(message: Exclude<ToWorker, { type: "stop" }>): void {
    if (message.type === "prepare") this.#starts = this.#starts.then(() => prepare(message.entry));
    else if (message.type === "open") this.#start(() => this.#open(message.entry, message.data));
    else if (message.type === "load") this.#start(() => this.#load(message.init));
    else if (message.type === "answered") this.#asks.answered(message);
    else if (this.#served === undefined) this.#early.push(message);
    else this.#served.take(message);
  }

  /** Closes the model once it is loaded; with `finishes`, only after all its batches. */
  async close(finishes: boolean): Promise<void> {
    await this.#starts;
    if (finishes) await this.#served?.finished;
    try {
      await (this.#served ?? this.#opened)?.close();
    } catch (error) {
      this.port.post({ type: "warning", message: TritonError.from(error).message }, []);
    }
  }

  #start(start: () => Promise<void>): void {
    this.#starts = this.#starts.then(start).catch((thrown) => {
      this.#failed = true;
      this.port.post({ type: "failed", error: packError(thrown) }, []);
      this.port.close();
    });
  }

  async #open(entry: string, data: unknown): Promise<void> {
    const { open } = (await import(entry)) as WorkerEntry;
    this.#opened = await open!(data, this.#host(false));
    this.port.post({ type: "opened", description: this.#opened.description }, []);
  }

  async #load(init: WorkerInit): Promise<void> {
    if (this.#failed) return;
    const { entry, data, info } = init;
    const model =
      this.#opened?.load(info) ??
      (await ((await import(entry)) as WorkerEntry).load(data, info, this.#host(init.logsConsole)));
    this.#served = new ServedModel(
      model,
      init,
      this.port,
      model.callsModels ? await this.#calls() : undefined,
    );
    for (const message of this.#early.splice(0)) this.#served.take(message);
    this.port.post({ type: "ready", details: model.details ?? {}, closes: model.close !== undefined }, []);
  }

  async #calls(): Promise<CallsToModels> {
    const { CallsToModels } = await import("./model-call-client.js");
    return new CallsToModels((message, transfer) => this.port.post(message, transfer));
  }

  #host(logsConsole: boolean): WorkerHost {
    return {
      logsConsole,
      warn: (message) => this.port.post({ type: "warning", message }, []),
      report: (value) => this.port.post({ type: "report", value }, []),
      log: (line) => this.port.post({ type: "log", line }, []),
      changeMetrics: (changes) => this.port.post({ type: "metrics", changes }, []),
      control: (ask) => this.#asks.ask(ask),
    };
  }
}

/** Prepares a program. A failure is reported when a model needs the part that failed. */
async function prepare(entry: string): Promise<void> {
  try {
    await ((await import(entry)) as WorkerEntry).prepare?.();
  } catch {}
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** The worker's side of a model's requests to the server's repository. */
class AsksOfServer {
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
