import { Server, ServerCredentials } from "@grpc/grpc-js";
import type { Triton } from "@tritonjs/core";
import { addV2Service } from "@tritonjs/grpc";

/** A program's own server of grpc-js that the v2 service is added to, on a free port; `close` ends it with its calls. */
export async function openGrpcJsServer(triton: Triton): Promise<{ url: string; close: () => void }> {
  const server = new Server();
  addV2Service(server, triton);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("localhost:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { url: `localhost:${port}`, close: () => server.forceShutdown() };
}
