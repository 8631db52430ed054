import { afterEach, beforeEach, describe } from "vitest";
import type { GrpcOptions } from "../../src/index.js";

type TransportName = NonNullable<GrpcOptions["transport"]>;

const TRANSPORTS: readonly TransportName[] = ["http2", "grpc-js"];

let current: TransportName = "http2";

/** The transport that the current test uses. */
export function currentTransport(): TransportName {
  return current;
}

/** Runs the same tests over each transport. */
export function overEachTransport(name: string, tests: () => void): void {
  describe.each(TRANSPORTS)(`${name} over %s`, (transport) => {
    beforeEach(() => {
      current = transport;
    });
    afterEach(() => {
      current = "http2";
    });
    tests();
  });
}
