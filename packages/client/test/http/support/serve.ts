import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type DataType, Triton } from "@tritonjs/core";
import { type HttpOptions, http } from "@tritonjs/http";
import { onTestFinished } from "vitest";

/** Serves what `bind` binds until the end of the test, and returns the address. */
export async function serve(bind: (triton: Triton) => void, options: HttpOptions = {}): Promise<string> {
  const triton = new Triton({ security: { restrictedEndpoints: [] } });
  bind(triton);
  onTestFinished(() => triton.close());
  const { addresses } = await triton.serve({ frontends: [http({ port: 0, ...options })] });
  return addresses.http!.url;
}

/** Binds a model that returns its input `IN` as `OUT`. */
export function bindIdentity(triton: Triton, modelName: string, dtype: DataType, shape: number[]): void {
  triton.bind({
    modelName,
    inputs: [{ name: "IN", dtype, shape }],
    outputs: [{ name: "OUT", dtype, shape }],
    inferFunc: (requests) => requests.map(({ inputs }) => ({ OUT: inputs.IN })),
    config: { batching: false },
  });
}

/** Serves requests by hand until the end of the test, and returns the address. */
export async function serveByHand(
  listener: RequestListener,
): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(() => resolve()));
  });
  return { url: `http://localhost:${(server.address() as AddressInfo).port}`, server };
}

/** The address of a server that has closed. */
export async function deadUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://localhost:${port}`;
}
