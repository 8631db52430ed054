import { batch, Triton, type TritonOptions } from "@tritonjs/core";
import { http, metrics } from "@tritonjs/http";
import { type DashboardOptions, dashboard } from "@tritonjs/http/dashboard";
import { deadlines } from "@tritonjs/scheduling";
import array from "ndarray";
import { onTestFinished } from "vitest";
import { type ServedOptions, servedOptions } from "../../../../../test/support/served-options.js";

/** Options of a server without restrictions that drops its log. */
const QUIET: TritonOptions = {
  security: { restrictedEndpoints: [] },
  logger: { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} },
};

/** A server with a dashboard on its metrics port, which samples fast, and a model that doubles numbers. */
export async function openDashboard(options: ServedOptions = {}, more: DashboardOptions = {}) {
  const triton = new Triton(servedOptions({ ...QUIET, ...options }));
  onTestFinished(() => triton.close());
  const double = triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [-1] }],
    inferFunc: batch(({ x }) => {
      if (x.get(0, 0) < 0) throw new Error("<img src=x onerror=alert(1)>");
      const [rows, columns] = x.shape;
      return {
        y: array(
          x.data.map((value) => value * 2),
          [rows!, columns!],
        ),
      };
    }),
    config: { maxBatchSize: 8 },
  });
  const pages = dashboard({ intervalMs: 20, ...more });
  const { addresses } = await triton.serve({
    frontends: [http({ port: 0, landing: pages }), metrics({ port: 0, pages })],
  });
  const root = `${addresses.metrics!.url}/dashboard`;
  return { triton, double, root, addresses: { http: addresses.http!.url, metrics: addresses.metrics!.url } };
}

/**
 * Binds a model whose queue is ordered by deadlines, and sends it requests of two callers: `gold` has answers in time,
 * `<b>slow</b>` asks for answers faster than the model can be.
 */
export async function sendByDeadlines(triton: Triton): Promise<void> {
  const model = triton.bind({
    modelName: "squares",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(async ({ x }) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return { y: x };
    }),
    config: { maxBatchSize: 1, batcher: deadlines() },
  });
  const send = (timeoutMs: number, priority: number, caller: string) =>
    model.inferSample({ x: [1] }, { timeoutMs, priority, parameters: { caller } }).catch(() => {});
  for (let i = 0; i < 6; i++) await send(30_000, 1, "gold");
  for (let i = 0; i < 3; i++) await send(1, 2, "<b>slow</b>");
}
