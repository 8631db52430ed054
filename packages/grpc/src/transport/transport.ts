import type { Socket } from "node:net";

/** What a transport is told. */
export interface TransportOptions {
  /** Largest message that is taken, in bytes, also after decompression. */
  readonly maxReceiveMessageSize: number;
}

/** Moves the messages of methods over connections. It does not listen. */
export interface Transport {
  /** Takes a connection. */
  accept(socket: Socket): void;
  /** Tells the clients to go, and resolves when the calls at hand are over. */
  stop(): Promise<void>;
}
