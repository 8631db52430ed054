import { type Server, ServerCredentials } from "@grpc/grpc-js";
import { onTestFinished } from "vitest";

/** Binds a server of grpc-js to a free port until the test ends. */
export async function listening(
  server: Server,
  security: ServerCredentials = ServerCredentials.createInsecure(),
): Promise<{ readonly url: string; readonly port: number }> {
  onTestFinished(() => server.forceShutdown());
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("localhost:0", security, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { url: `localhost:${port}`, port };
}
