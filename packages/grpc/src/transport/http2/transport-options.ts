import type { RequestMemory } from "@tritonjs/core/frontend";
import type { ResolvedConnectionOptions } from "./connection-options.js";

/** How much time is spent on making responses smaller. */
export type CompressionLevel = "none" | "low" | "medium" | "high";

/** Options of the transport over node:http2. */
export interface TransportOptions extends ResolvedConnectionOptions {
  /** Largest message that is taken, in bytes, also after decompression. */
  readonly maxReceiveMessageSize: number;
  /** Counts messages from their first byte to the end of their request. */
  readonly requestMemory: RequestMemory;
  /** Compression of responses to inferences, for clients that understand it. */
  readonly inferResponseCompressionLevel: CompressionLevel;
}
