import type { InferenceService } from "@tritonjs/core";
import type { HeaderForwarding } from "./forward-headers.js";
import type { Shutdown } from "./shutdown.js";

/** What inference needs besides its messages. */
export interface InferContext {
  readonly service: InferenceService;
  readonly forwardHeaders: HeaderForwarding;
  readonly shutdown: Shutdown;
}
