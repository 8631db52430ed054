import type { Socket } from "node:net";
import type { RequestMemory } from "@tritonjs/core";
import type { ResolvedConnectionOptions } from "./connection-options.js";

/** How much time is spent on making responses smaller. */
export type CompressionLevel = "none" | "low" | "medium" | "high";

/** What a transport is told. */
export interface TransportOptions extends ResolvedConnectionOptions {
  /** Largest message that is taken, in bytes, also after decompression. */
  readonly maxReceiveMessageSize: number;
  /** Counts messages from their first byte to the end of their request. */
  readonly requestMemory: RequestMemory;
  /** Compression of responses to inferences, for clients that understand it. */
  readonly inferResponseCompressionLevel: CompressionLevel;
}

/** Moves the messages of methods over connections. It does not listen. */
export interface Transport {
  /** Takes a connection. */
  accept(socket: Socket): void;
  /** Tells the clients to go, and resolves when the calls at hand are over. */
  stop(): Promise<void>;
}
