import {
  AccessGate,
  type Authentication,
  type InferenceService,
  type Restriction,
  type Restrictions,
} from "@tritonjs/core/frontend";
import { headerPattern, keyList } from "@tritonjs/core/internal";
import type { EndpointGroup } from "@tritonjs/core/types";
import { errorFor } from "@tritonjs/protocol";
import { type InferHandlerContext, inferMethods } from "../infer/model-infer.js";
import { streamInferMethods } from "../infer/model-stream-infer.js";
import type { Shutdown } from "../shutdown.js";
import type { Call, CallHeaders, Method } from "../transport/method.js";
import {
  healthMethods,
  healthWatchMethods,
  logMethods,
  metadataMethods,
  reflectionMethods,
  repositoryMethods,
  sharedMemoryMethods,
  statisticsMethods,
  traceMethods,
} from "./management-methods.js";

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

/** The names of the options of the handlers. */
export const HANDLER_OPTION_KEYS = keyList<HandlerOptions>({
  headerForwardPattern: true,
  restrictedProtocols: true,
  reflection: true,
});

/** All methods of the protocol over one service. */
export function protocolMethods(
  service: InferenceService,
  options: HandlerOptions,
  shutdown: Shutdown,
): Method[] {
  const context: InferHandlerContext = {
    service,
    forwardedHeaders: headerPattern(options.headerForwardPattern),
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
  const gate = new AccessGate(restrictions);
  return methods.map((method) => ({ ...method, admit: admissionTo(method, gate, service.authentication) }));
}

/** Methods that require a header with a secret. */
export interface RestrictedProtocols {
  readonly protocols: readonly EndpointGroup[];
  /** Name of the header, without its prefix `triton-grpc-protocol-`. */
  readonly key: string;
  readonly value: string;
}

const HEADER_PREFIX = "triton-grpc-protocol-";

/**
 * Converts the restrictions to a table by protocol.
 *
 * @throws TritonError INVALID_ARG when a protocol is restricted twice.
 */
function toRestrictions(restricted: readonly RestrictedProtocols[]): Restrictions {
  const restrictions: Partial<Record<EndpointGroup, Restriction>> = {};
  for (const { protocols, key, value } of restricted) {
    for (const protocol of protocols) {
      if (restrictions[protocol] !== undefined) {
        const text = `protocol '${protocol}' can not be specified in multiple config groups`;
        throw errorFor("INVALID_OPTION", text);
      }
      restrictions[protocol] = { header: key, value };
    }
  }
  return restrictions;
}

/** Decides which calls of a method may be made; undefined if all may. */
function admissionTo(
  { path, protocol }: Method,
  gate: AccessGate,
  authentication: Authentication | undefined,
): Method["admit"] {
  const authenticates = authentication?.guards(protocol) === true;
  if (!authenticates && !gate.guards(protocol)) return undefined;
  return async ({ headers, remoteAddress }) => {
    if (authenticates) {
      const request = { transport: "grpc", method: "POST", path, group: protocol, remoteAddress } as const;
      await authentication.check({ ...request, headers: headersOf(headers) });
    }
    const missing = gate.missingHeader(protocol, (header) => headers.get(onTheWire(header)));
    if (missing === undefined) return;
    const text = `This protocol is restricted, expecting header '${onTheWire(missing)}'`;
    throw errorFor("ACCESS_RESTRICTED", text);
  };
}

/** Name of a header in metadata, which is in lower case. */
function onTheWire(header: string): string {
  return `${HEADER_PREFIX}${header.toLowerCase()}`;
}

function headersOf(sent: CallHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of sent.entries()) headers.append(name, value);
  return headers;
}
