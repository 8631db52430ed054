import { afterEach, beforeEach, describe } from "vitest";

/** What moves messages: the port of the frontend over node:http2, or a server of grpc-js that the methods are added to. */
type TransportName = "http2" | "grpc-js";

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
