import { TritonError } from "@tritonjs/protocol";
import type { Channel, ChannelListener } from "./channel.js";
import { unpackError } from "./messages.js";
import { openWorker } from "./open-worker.js";
import type { WorkerPlace, WorkerProgram } from "./worker-program.js";

/**
 * A worker that opens a model before its configuration is complete, because the open model says what is missing. The
 * first instance takes the worker over with the model in it.
 *
 * ```
 * opening --> open --take--> of the instance
 *    |          +---close--> closed
 *    +--> failed
 * ```
 */
export class OpenedWorker {
  /** What the model says of itself. Rejects with the reason why it cannot be opened. */
  readonly description: Promise<unknown>;
  /** Undefined once the worker is gone, or the instance's. */
  #channel: Channel | undefined;
  #onGone: (() => void) | undefined;

  /**
   * @param modelName for errors
   * @param warn shows a warning that comes from the worker
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

  /** Gives the worker away, to `load` the model; undefined when it is gone or was taken. */
  take(listener: ChannelListener, nice: number | undefined): Channel | undefined {
    const channel = this.#channel;
    this.#channel = undefined;
    if (channel === undefined) return undefined;
    channel.listener = listener;
    if (nice !== undefined) channel.lowerPriority(nice);
    return channel;
  }

  /** Closes the model that no instance took. Resolves when the worker has done so. */
  async close(): Promise<void> {
    const channel = this.#channel;
    if (channel === undefined) return;
    await new Promise<void>((resolve) => {
      this.#onGone = resolve;
      channel.finish();
    });
  }
}
