import type { InferenceService } from "@tritonjs/core";
import type { Method } from "../transport/method.js";
import { headerForwarding } from "./forward-headers.js";
import { healthMethods } from "./health.js";
import { inferMethods } from "./infer.js";
import { metadataMethods } from "./metadata.js";
import { repositoryMethods } from "./repository.js";
import { statisticsMethods } from "./statistics.js";

/** What the handlers can be told. */
export interface HandlerOptions {
  /** Headers to hand to the model as request parameters. */
  readonly headerForwardPattern?: RegExp;
}

/** All methods of the protocol over one service. */
export function protocolMethods(service: InferenceService, options: HandlerOptions): Method[] {
  const forwardHeaders = headerForwarding(options.headerForwardPattern);
  return [
    ...healthMethods(service),
    ...metadataMethods(service),
    ...inferMethods(service, forwardHeaders),
    ...statisticsMethods(service),
    ...repositoryMethods(service),
  ];
}
