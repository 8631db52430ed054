import { createHash, timingSafeEqual } from "node:crypto";
import { TritonError } from "@tritonjs/core";
import type { Call, DuplexStream, ResponseStream } from "../transport/call.js";
import type { Method, Protocol } from "../transport/method.js";

/** Methods that need a header with a secret. */
export interface RestrictedProtocols {
  readonly protocols: readonly Protocol[];
  /** Name of the header, without the prefix `triton-grpc-protocol-` that it has on the wire. */
  readonly key: string;
  readonly value: string;
}

const HEADER_PREFIX = "triton-grpc-protocol-";

/**
 * The methods behind the restrictions that apply to them.
 *
 * @throws TritonError INVALID_ARG when a protocol is restricted twice.
 */
export function restrict(methods: readonly Method[], restrictions: readonly RestrictedProtocols[]): Method[] {
  const byProtocol = new Map<Protocol, RestrictedProtocols>();
  for (const restriction of restrictions) {
    for (const protocol of restriction.protocols) {
      if (byProtocol.has(protocol)) {
        throw new TritonError(
          "INVALID_ARG",
          `protocol '${protocol}' can not be specified in multiple config groups`,
        );
      }
      byProtocol.set(protocol, restriction);
    }
  }
  return methods.map((method) => {
    const restriction = byProtocol.get(method.protocol);
    return restriction === undefined ? method : guarded(method, restriction);
  });
}

function guarded(method: Method, { key, value }: RestrictedProtocols): Method {
  const header = `${HEADER_PREFIX}${key.toLowerCase()}`;
  const check = (call: Call): void => {
    if (sameText(call.headers.get(header) ?? "", value)) return;
    throw new TritonError("UNAVAILABLE", `This protocol is restricted, expecting header '${header}'`);
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

/** Compares in a time that tells nothing of where the texts differ. */
function sameText(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
