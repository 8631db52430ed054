import type { InstanceLimits } from "../../config/instance-hosting.js";
import type { FromWorker, ToWorker, WorkerInit } from "./messages.js";

/*
 * A worker is a thread or a process that runs a model. Both speak the same messages; a channel is all that they
 * differ in.
 */

/** The line to a worker. Messages come in the order in which they were sent. */
export interface Channel {
  /** What there is to say about the place: the number of the process. */
  readonly details: Readonly<Record<string, string>>;
  /**
   * Sends a message; a worker that is gone does not get it. The buffers in `transfer` go along without a copy where
   * they can.
   *
   * @throws for what cannot be cloned
   */
  post(message: ToWorker, transfer: ArrayBuffer[]): void;
  /**
   * Has a worker end that is idle.
   *
   * @param closeWithinMs how long it may take to close its model before; undefined for one that has nothing to close
   */
  end(closeWithinMs: number | undefined): void;
  /** Ends the worker at once, whatever it does. */
  kill(): void;
}

/** Hears from a worker. */
export interface ChannelListener {
  message(message: FromWorker): void;
  /** The worker is gone; nothing comes after this. `fault` is what it died of, where that is known. */
  gone(how: string, fault: unknown): void;
}

/** Starts a worker. */
export type OpenChannel = (init: WorkerInit, limits: InstanceLimits, listener: ChannelListener) => Channel;

/** The worker's end of the line. */
export interface WorkerPort {
  /** @throws for what cannot be cloned */
  post(message: FromWorker, transfer: ArrayBuffer[]): void;
  onMessage(listener: (message: ToWorker) => void): void;
  /** Lets the worker end. */
  close(): void;
}
