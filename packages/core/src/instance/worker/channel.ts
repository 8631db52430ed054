import type { InstanceLimits } from "../../config/options/instance-hosting.js";
import type { FromWorker, ToWorker } from "./messages.js";

/*
 * A worker is a thread or a process that runs a model. Both speak the same messages, and differ only in their channel.
 */

/** The connection to a worker. Messages arrive in the order in which they were sent. */
export interface Channel {
  /** Properties of the place: the id of the process. */
  readonly details: Readonly<Record<string, string>>;
  /** Listener for all further messages. */
  listener: ChannelListener;
  /**
   * Sends a message; a worker that has ended does not get it. The buffers in `transfer` are moved without a copy if
   * possible.
   *
   * @throws for values that cannot be cloned
   */
  post(message: ToWorker, transfer: ArrayBuffer[]): void;
  /** Lets the worker finish its batches and close its model. It then ends, or is kept for another model. */
  finish(): void;
  /**
   * Ends an idle worker.
   *
   * @param closeWithinMs time limit for closing its model first; undefined if there is nothing to close
   */
  end(closeWithinMs: number | undefined): void;
  /** Sets this priority for a process; a thread has the priority of its process. */
  lowerPriority(nice: number): void;
  /** Ends the worker at once, even while it runs a batch. */
  kill(): void;
}

/** Receives the messages of a worker. */
export interface ChannelListener {
  message(message: FromWorker): void;
  /** The worker has ended, or has another model; this is the last call. `fault` is the cause of its death, if known. */
  gone(how: string, fault: unknown): void;
}

/** Settings for the start of a worker. */
export interface WorkerLimits extends InstanceLimits {
  /** True if it may have had other models before, and may get others afterwards. */
  readonly reusable: boolean;
}

/** Starts a worker, or takes a spare one. It waits for a message to open or load a model. */
export type OpenChannel = (limits: WorkerLimits, listener: ChannelListener) => Channel;

/** The worker's end of the channel. */
export interface WorkerPort {
  /** @throws for values that cannot be cloned */
  post(message: FromWorker, transfer: ArrayBuffer[]): void;
  onMessage(listener: (message: ToWorker) => void): void;
  /** Lets the worker end. */
  close(): void;
}
