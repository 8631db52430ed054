import { Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { onTestFinished } from "vitest";
import { type ServedOptions, servedOptions } from "../../../../../test/support/served-options.js";

/** A server with models, in this process. */
export interface ReplicaServer {
  readonly triton: Triton;
  readonly grpcUrl: string;
  readonly httpUrl: string;
  readonly port: number;
  close(): Promise<void>;
}

/** Starts a server on ports of its own, or on a given port of gRPC; it is closed at the end of the test. */
export async function startReplica(
  bind: (triton: Triton) => void,
  { grpcPort = 0 }: { readonly grpcPort?: number } = {},
): Promise<ReplicaServer> {
  const triton = new Triton({ allowMetrics: false, exitTimeoutSecs: 0 });
  bind(triton);
  const { addresses } = await triton.serve({
    frontends: [grpc({ address: "127.0.0.1", port: grpcPort }), http({ address: "127.0.0.1", port: 0 })],
  });
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => (closed ??= triton.close());
  onTestFinished(close);
  const { grpc: overGrpc, http: overHttp } = addresses;
  return {
    triton,
    grpcUrl: `grpc://127.0.0.1:${overGrpc!.port}`,
    httpUrl: `http://127.0.0.1:${overHttp!.port}`,
    port: overGrpc!.port,
    close,
  };
}

/** The local server, which is closed at the end of the test. */
export function localServer(options: ServedOptions = {}): Triton {
  const triton = new Triton(servedOptions({ exitTimeoutSecs: 0, ...options }));
  onTestFinished(() => triton.close());
  return triton;
}

/** Options of a model `y = 2 x`, with rows of two numbers. */
export const DOUBLE = {
  modelName: "double",
  inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [2] }],
} as const;
