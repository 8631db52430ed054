import type { AccessGate, Restriction, Restrictions } from "@tritonjs/core/frontend";
import type { EndpointGroup } from "@tritonjs/core/types";
import { TritonError } from "@tritonjs/protocol";
import type { Call, DuplexStream, ResponseStream } from "../transport/call.js";
import type { Method } from "../transport/method.js";

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
export function toRestrictions(restricted: readonly RestrictedProtocols[]): Restrictions {
  const restrictions: Partial<Record<EndpointGroup, Restriction>> = {};
  for (const { protocols, key, value } of restricted) {
    for (const protocol of protocols) {
      if (restrictions[protocol] !== undefined) {
        const text = `protocol '${protocol}' can not be specified in multiple config groups`;
        throw new TritonError("INVALID_ARG", text, { reason: "INVALID_OPTION" });
      }
      restrictions[protocol] = { header: key, value };
    }
  }
  return restrictions;
}

/** Puts a gate in front of the methods. */
export function restrict(methods: readonly Method[], gate: AccessGate): Method[] {
  return methods.map((method) => (gate.guards(method.protocol) ? guarded(method, gate) : method));
}

function guarded(method: Method, gate: AccessGate): Method {
  const check = ({ headers }: Call): void => {
    const missing = gate.missingHeader(method.protocol, (header) => headers.get(onTheWire(header)));
    if (missing === undefined) return;
    const text = `This protocol is restricted, expecting header '${onTheWire(missing)}'`;
    throw new TritonError("UNAVAILABLE", text, { reason: "ACCESS_RESTRICTED" });
  };
  switch (method.kind) {
    case "unary":
      return {
        ...method,
        handle: (request: unknown, call: Call) => {
          check(call);
          return method.handle(request, call);
        },
      };
    case "server-stream":
      return {
        ...method,
        handle: (request: unknown, call: ResponseStream<unknown>) => {
          check(call);
          method.handle(request, call);
        },
      };
    case "duplex":
      return {
        ...method,
        handle: (call: DuplexStream<unknown, unknown>) => {
          check(call);
          method.handle(call);
        },
      };
  }
}

/** Name of a header in metadata, which is in lower case. */
function onTheWire(header: string): string {
  return `${HEADER_PREFIX}${header.toLowerCase()}`;
}
