import type { InstanceLimits } from "../../config/options/instance-hosting.js";
import type { FromWorker, ToWorker } from "./messages.js";

/*
 * A worker is a thread or a process that runs a model. Both speak the same messages; a channel is all that they
 * differ in.
 */

/** The line to a worker. Messages come in the order in which they were sent. */
export interface Channel {
  /** What there is to say about the place: the number of the process. */
  readonly details: Readonly<Record<string, string>>;
  /** Hears from the worker from now on. */
  listener: ChannelListener;
  /**
   * Sends a message; a worker that is gone does not get it. The buffers in `transfer` go along without a copy where
   * they can.
   *
   * @throws for what cannot be cloned
   */
  post(message: ToWorker, transfer: ArrayBuffer[]): void;
  /** Has the worker close its model when it is done with all that it has; it ends then, or is kept for another model. */
  finish(): void;
  /**
   * Has a worker end that is idle.
   *
   * @param closeWithinMs how long it may take to close its model before; undefined for one that has nothing to close
   */
  end(closeWithinMs: number | undefined): void;
  /** Gives a process this priority; a thread has that of its process. */
  lowerPriority(nice: number): void;
  /** Ends the worker at once, whatever it does. */
  kill(): void;
}

/** Hears from a worker. */
export interface ChannelListener {
  message(message: FromWorker): void;
  /** The worker is gone, or has another model; nothing comes after this. `fault` is what it died of, where that is known. */
  gone(how: string, fault: unknown): void;
}

/** What a worker is started for. */
export interface WorkerLimits extends InstanceLimits {
  /** Whether it may have had other models before, and have others afterwards. */
  readonly reusable: boolean;
}

/** Starts a worker, or takes one that is there. It waits for what to open or load. */
export type OpenChannel = (limits: WorkerLimits, listener: ChannelListener) => Channel;

/** The worker's end of the line. */
export interface WorkerPort {
  /** @throws for what cannot be cloned */
  post(message: FromWorker, transfer: ArrayBuffer[]): void;
  onMessage(listener: (message: ToWorker) => void): void;
  /** Lets the worker end. */
  close(): void;
}
