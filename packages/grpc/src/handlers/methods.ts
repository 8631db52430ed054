import { AccessGate, type InferenceService } from "@tritonjs/core/frontend";
import type { Method } from "../transport/method.js";
import { authenticated } from "./authenticate.js";
import { headerForwarding } from "./forward-headers.js";
import { healthMethods } from "./health.js";
import { healthWatchMethods } from "./health-watch.js";
import { type InferHandlerContext, inferMethods } from "./infer.js";
import { streamInferMethods } from "./infer-stream.js";
import { logMethods } from "./log.js";
import { metadataMethods } from "./metadata.js";
import { reflectionMethods } from "./reflection.js";
import { repositoryMethods } from "./repository.js";
import { type RestrictedProtocols, restrict, toRestrictions } from "./restrict.js";
import { sharedMemoryMethods } from "./shared-memory.js";
import type { Shutdown } from "./shutdown.js";
import { statisticsMethods } from "./statistics.js";
import { traceMethods } from "./trace.js";

/** Options of the handlers. */
export interface HandlerOptions {
  /**
   * Headers with a name that matches anywhere go to the model as string parameters. A string is in the syntax of RE2.
   */
  readonly headerForwardPattern?: string | RegExp;
  /**
   * Groups of methods that require a header with a secret, `[]` for none; those of the `Triton`'s `security` unless
   * given.
   */
  readonly restrictedProtocols?: readonly RestrictedProtocols[];
  /** Adds server reflection, which lists the services and describes their messages. */
  readonly reflection?: boolean;
}

/** All methods of the protocol over one service. */
export function protocolMethods(
  service: InferenceService,
  options: HandlerOptions,
  shutdown: Shutdown,
): Method[] {
  const context: InferHandlerContext = {
    service,
    forwardHeaders: headerForwarding(options.headerForwardPattern),
    shutdown,
  };
  const methods = [
    ...healthMethods(service),
    ...healthWatchMethods(service, shutdown),
    ...metadataMethods(service),
    ...inferMethods(context),
    ...streamInferMethods(context),
    ...statisticsMethods(service),
    ...repositoryMethods(service),
    ...sharedMemoryMethods(service),
    ...logMethods(service),
    ...traceMethods(service),
    ...(options.reflection ? reflectionMethods(shutdown) : []),
  ];
  const { restrictedProtocols: given } = options;
  const restrictions = given === undefined ? service.restrictions : toRestrictions(given);
  return authenticated(restrict(methods, new AccessGate(restrictions)), service.authentication);
}
