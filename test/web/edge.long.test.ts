import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { npmTool } from "../package/foreign-tools.js";
import { freePorts } from "../support/free-ports.js";
import { irisModel } from "../support/iris.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const name = `@cloudflare/workerd-${process.platform}-${process.arch === "arm64" ? "arm64" : "64"}`;
const workerd = npmTool("workerd", "workerd", `${name}@1.20261117.1`, join(name, "bin", "workerd"));

interface Answer {
  readonly outputs: readonly { readonly data: readonly number[] }[];
}

describe.skipIf(workerd.path === undefined)(`a worker at the edge, in workerd${workerd.note}`, () => {
  let folder: string;
  let program: Program;
  let url: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "tritonjs-edge-"));
    const build = await rolldown({
      input: join(import.meta.dirname, "edge-worker.mjs"),
      platform: "browser",
      external: [/^node:/, /\.wasm$/, /\.onnx$/],
      resolve: { conditionNames: ["workerd", "worker", "browser", "import", "default"] },
    });
    const { output } = await build.generate({ format: "esm", codeSplitting: false });
    await build.close();
    writeFileSync(join(folder, "worker.js"), output[0].code);
    const wasm = "ort-wasm-simd-threaded.wasm";
    copyFileSync(join(repositoryRoot, "packages/onnxruntime-wasm/ort", wasm), join(folder, wasm));
    copyFileSync(fileURLToPath(irisModel), join(folder, "iris.onnx"));
    const [port] = await freePorts(1);
    writeFileSync(
      join(folder, "config.capnp"),
      `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main)],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]
);
const main :Workerd.Worker = (
  modules = [
    (name = "worker", esModule = embed "worker.js"),
    (name = "${wasm}", wasm = embed "${wasm}"),
    (name = "iris.onnx", data = embed "iris.onnx"),
  ],
  compatibilityDate = "2026-06-01",
  compatibilityFlags = ["nodejs_compat"],
);
`,
    );
    program = new Program(workerd.path!, ["serve", join(folder, "config.capnp")], { cwd: folder });
    url = `http://127.0.0.1:${port}`;
    // It listens when it has compiled the worker, and ends when it cannot.
    await Promise.race([
      vi.waitFor(() => fetch(url), { timeout: 240_000 }),
      program.ended.then(({ stderr }) => Promise.reject(new Error(`workerd ended: ${stderr}`))),
    ]);
  }, 300_000);

  afterAll(async () => {
    program?.signal("SIGTERM");
    await program?.ended;
    rmSync(folder, { recursive: true, force: true });
  });

  const infer = (data: number[]) =>
    fetch(`${url}/v2/models/double/infer`, {
      method: "POST",
      body: JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1, data.length], data }] }),
    });

  it("answers the v2 protocol by fetchHandler", async () => {
    expect((await fetch(`${url}/v2/health/ready`)).status).toBe(200);
    const response = await infer([1, 2.5]);
    expect(response.status).toBe(200);
    expect(((await response.json()) as Answer).outputs).toEqual([
      { name: "y", datatype: "FP32", shape: [1, 2], data: [2, 5] },
    ]);
  });

  it("answers requests that come together", async () => {
    const answers = await Promise.all(
      Array.from(
        { length: 20 },
        async (_, i) => ((await (await infer([i])).json()) as Answer).outputs[0]!.data[0],
      ),
    );
    expect(answers).toEqual(Array.from({ length: 20 }, (_, i) => 2 * i));
  });

  it("answers by an ONNX model as WebAssembly", async () => {
    const inputs = [{ name: "measurements", datatype: "FP32", shape: [1, 4], data: [5.1, 3.5, 1.4, 0.2] }];
    const ask = async (body: object) =>
      fetch(`${url}/v2/models/iris/infer`, { method: "POST", body: JSON.stringify(body) });
    const response = await ask({ inputs, outputs: [{ name: "probabilities" }] });
    expect(((await response.json()) as Answer).outputs[0]!.data[0]).toBeCloseTo(0.99797, 4);
    expect((await ask({ inputs: [{ ...inputs[0], shape: [4] }] })).status).toBe(400);
  });

  it("refuses a bad request, and answers the next one", async () => {
    const response = await fetch(`${url}/v2/models/double/infer`, { method: "POST", body: "{" });
    // As Triton does.
    expect([response.status, await response.text()]).toEqual([
      500,
      '{"error":"failed to parse the request JSON buffer: Missing a name for object member. at 1"}',
    ]);
    expect((await infer([4])).status).toBe(200);
  });
});
