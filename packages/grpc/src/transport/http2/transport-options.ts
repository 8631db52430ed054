import type { RequestMemory } from "@tritonjs/core/frontend";
import type { ResolvedConnectionOptions } from "./connection-options.js";
import type { MessageLimit } from "./frames.js";

/** How much time to spend on the compression of responses. */
export type CompressionLevel = "none" | "low" | "medium" | "high";

/** Options of the transport over node:http2. */
export interface TransportOptions extends ResolvedConnectionOptions {
  /** Largest accepted message, also after decompression. */
  readonly messageLimit: MessageLimit;
  /** Counts messages from their first byte to the end of their request. */
  readonly requestMemory: RequestMemory;
  /** Compression of responses to inferences, for clients that accept it. */
  readonly inferResponseCompressionLevel: CompressionLevel;
}
