import type { Worker } from "node:worker_threads";
import { type Frontend, sample, Triton, type TritonOptions } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { onTestFinished } from "vitest";

/** A Triton with a model `double`, which is closed after the test. */
export function openTriton(options: TritonOptions = {}): Triton {
  const triton = new Triton({ security: { restrictedEndpoints: [] }, ...options });
  onTestFinished(() => triton.close());
  bindDouble(triton, "double");
  return triton;
}

/** Binds a model that doubles its numbers. */
export function bindDouble(triton: Triton, modelName: string) {
  return triton.bind({
    modelName,
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
  });
}

/** Serves in threads, and returns the URL of HTTP and the workers. */
export async function serveInThreads(
  triton: Triton,
  frontendThreads: number,
  frontends: readonly Frontend[] = [http({ port: 0, address: "127.0.0.1" })],
) {
  const workers: Worker[] = [];
  const note = (worker: Worker): void => void workers.push(worker);
  process.on("worker", note);
  onTestFinished(() => void process.off("worker", note));
  const { addresses } = await triton.serve({ frontends, frontendThreads });
  return { addresses, url: addresses.http?.url ?? "", workers };
}

/** Asks the model `double`, over a connection of its own. */
export async function askDouble(
  url: string,
  model = "double",
  value = 3,
): Promise<[status: number, text: string]> {
  const body = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1], data: [value] }] });
  const answer = await fetch(`${url}/v2/models/${model}/infer`, {
    method: "POST",
    body,
    headers: { connection: "close" },
  });
  return [answer.status, await answer.text()];
}
