import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { sample, Triton } from "@tritonjs/core";
import { type GrpcOptions, grpc } from "@tritonjs/grpc";
import { type HttpOptions, http } from "@tritonjs/http";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import { type ServedOptions, servedOptions } from "../../support/served-options.js";

/** A server under attack, and a check that it serves other clients. */
export interface AttackedServer {
  readonly triton: Triton;
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly clients: readonly [HttpClient, GrpcClient];
  /** Sends a good request over each protocol on a new connection, and expects its answer. */
  serves(): Promise<void>;
  close(): Promise<void>;
}

interface ServerOptions {
  readonly triton?: ServedOptions;
  readonly http?: HttpOptions;
  readonly grpc?: GrpcOptions;
  /** Binds further models. */
  bind?(triton: Triton): void;
}

/** Opens a server until the end of the test. */
export async function openServer(options: ServerOptions = {}): Promise<AttackedServer> {
  const server = await startServer(options);
  onTestFinished(() => server.close());
  return server;
}

/** One server for all tests of a file or a group. Its properties exist while the tests run. */
export function useServer(
  options: () => ServerOptions | Promise<ServerOptions> = () => ({}),
): AttackedServer {
  const shared = {} as AttackedServer;
  beforeAll(async () => void Object.assign(shared, await startServer(await options())));
  afterAll(() => shared.close());
  return shared;
}

/** Opens both protocols on free ports, with the model `echo` of any number of BYTES. */
async function startServer(options: ServerOptions): Promise<AttackedServer> {
  const triton = new Triton(servedOptions({ security: { restrictedEndpoints: [] }, ...options.triton }));
  triton.bind({
    modelName: "echo",
    inputs: [{ name: "x", dtype: "BYTES", shape: [-1] }],
    outputs: [{ name: "y", dtype: "BYTES", shape: [-1] }],
    inferFunc: sample(({ x }) => ({ y: x })),
  });
  options.bind?.(triton);
  const frontends = [http({ port: 0, ...options.http }), grpc({ port: 0, ...options.grpc })];
  const { addresses } = await triton.serve({ frontends });
  const httpUrl = addresses.http!.url;
  const grpcUrl = addresses.grpc!.url;
  const clients = [new HttpClient(httpUrl), new GrpcClient(grpcUrl)] as const;
  return {
    triton,
    httpPort: addresses.http!.port,
    grpcPort: addresses.grpc!.port,
    clients,
    async serves() {
      const answer = await fetch(`${httpUrl}/v2/models/echo/infer`, {
        method: "POST",
        body: '{"inputs":[{"name":"x","datatype":"BYTES","shape":[1],"data":["good"]}]}',
        headers: { connection: "close" },
      });
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('"data":["good"]')]);
      const client = new GrpcClient(grpcUrl);
      try {
        const x = { datatype: "BYTES", shape: [1], data: ["good"] } as const;
        const result = await client.infer("echo", { inputs: { x } });
        expect([...result.elements("y", "BYTES")]).toHaveLength(1);
      } finally {
        client.close();
      }
    },
    async close() {
      for (const client of clients) await client.close();
      await triton.close();
    },
  };
}
