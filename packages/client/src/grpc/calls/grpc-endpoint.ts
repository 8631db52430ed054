import { GrpcCalls } from "../carrier/grpc-calls.js";
import type { ClientOptions } from "../client-options.js";

/** The base class of the client's calls: the server, and how to call it. */
export abstract class GrpcEndpoint {
  protected readonly calls: GrpcCalls;
  protected readonly options: ClientOptions;

  /**
   * @param url address of the server: `localhost:8001`, `grpcs://example.org:443`; or several servers: a list of
   * addresses, or `dns://name:8001` for all addresses of a name
   * @throws TritonError INVALID_ARG for an invalid address or certificate.
   */
  constructor(url: string | readonly string[], options: ClientOptions = {}) {
    this.calls = new GrpcCalls(url, options);
    this.options = options;
  }

  /** Ends the calls in flight with CANCELLED. Later calls fail with UNAVAILABLE. */
  close(): void {
    this.calls.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
