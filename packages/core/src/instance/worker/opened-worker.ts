import { TritonError } from "@tritonjs/protocol";
import type { Channel, ChannelListener } from "./channel.js";
import { unpackError } from "./messages.js";
import { openWorker } from "./open-worker.js";
import type { WorkerPlace, WorkerProgram } from "./worker-program.js";

/**
 * A worker that opens a model before its configuration is complete, because the configuration is completed from the
 * open model. The first instance takes over the worker with the model in it.
 *
 * ```
 * opening --> open --take--> of the instance
 *    |          +---close--> closed
 *    +--> failed
 * ```
 */
export class OpenedWorker {
  /** Description from the open model. Rejects with the reason if it cannot be opened. */
  readonly description: Promise<unknown>;
  /** Undefined once the worker has ended or was taken by the instance. */
  #channel: Channel | undefined;
  #onGone: (() => void) | undefined;

  /**
   * @param modelName name of the model for errors
   * @param warn shows a warning of the worker
   */
  constructor(
    modelName: string,
    program: WorkerProgram,
    place: Pick<WorkerPlace, "hosting">,
    warn: (message: string) => void,
  ) {
    this.description = new Promise((resolve, reject) => {
      let failure: TritonError | undefined;
      const channel = openWorker(program, place, {
        message: (message) => {
          if (message.type === "opened") resolve(message.description);
          else if (message.type === "warning") warn(message.message);
          else if (message.type === "failed") failure = unpackError(message.error);
        },
        gone: (how, fault) => {
          this.#channel = undefined;
          const why = fault === undefined ? how : `crashed: ${TritonError.from(fault).message}`;
          reject(
            failure ??
              new TritonError("INTERNAL", `cannot open model '${modelName}': its worker ${why}`, {
                reason: "WORKER_CRASHED",
              }),
          );
          this.#onGone?.();
        },
      });
      this.#channel = channel;
      channel.post({ type: "open", entry: program.entry.href, data: program.data }, []);
    });
  }

  /** Passes the worker on, to `load` the model; undefined if it has ended or was already taken. */
  take(listener: ChannelListener, nice: number | undefined): Channel | undefined {
    const channel = this.#channel;
    this.#channel = undefined;
    if (channel === undefined) return undefined;
    channel.listener = listener;
    if (nice !== undefined) channel.lowerPriority(nice);
    return channel;
  }

  /** Closes a model that no instance took. Resolves when the worker has closed it. */
  async close(): Promise<void> {
    const channel = this.#channel;
    if (channel === undefined) return;
    await new Promise<void>((resolve) => {
      this.#onGone = resolve;
      channel.finish();
    });
  }
}
