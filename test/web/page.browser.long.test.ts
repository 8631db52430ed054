import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton } from "@tritonjs/core";
import { fetchHandler, toNodeListener } from "@tritonjs/http/fetch";
import type { Browser, Page } from "playwright-core";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OnnxNode, onnxModel } from "../../examples/onnx-writer/onnx-writer.js";
import { hasBrowser, openBrowser, openPage, withoutBrowser } from "../support/browser.js";
import { irisModel } from "../support/iris.js";
import { SeededRandom } from "../support/seeded-random.js";

const require = createRequire(new URL("../../packages/backends/package.json", import.meta.url));
const ortFolder = join(require.resolve("onnxruntime-web"), "..");

/** The page's script as a bundler of an application makes it: for browsers, without anything of Node. */
async function script(module: string): Promise<string> {
  const build = await rolldown({
    input: join(import.meta.dirname, module),
    platform: "browser",
    resolve: {
      conditionNames: ["browser", "import", "default"],
      alias: {
        "onnxruntime-web/wasm": join(ortFolder, "ort.wasm.bundle.min.mjs"),
        "@tritonjs/backends/onnxruntime/web": join(
          require.resolve("@tritonjs/backends/package.json"),
          "../dist/onnxruntime/web.js",
        ),
      },
    },
  });
  const { output } = await build.generate({ format: "esm" });
  await build.close();
  return output[0].code;
}

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript",
  mjs: "text/javascript",
  wasm: "application/wasm",
};

const WIDTH = 16;

/** Networks of dense layers with other depths and activations. */
function network(seed: number): Uint8Array {
  const random = new SeededRandom(seed);
  const layers = 1 + (seed % 4);
  const activations = ["Relu", "Tanh", "Sigmoid", "Softplus", "Elu"];
  const nodes: OnnxNode[] = [];
  for (let i = 0; i < layers; i++) {
    nodes.push({ op: "MatMul", inputs: [i === 0 ? "x" : `h${i}`, `w${i}`], outputs: [`m${i}`] });
    const op = activations[(seed + i) % activations.length]!;
    nodes.push({ op, inputs: [`m${i}`], outputs: [i === layers - 1 ? "y" : `h${i + 1}`] });
  }
  return onnxModel({
    name: "network",
    opset: 17,
    inputs: [{ name: "x", elemType: "FLOAT", dims: ["batch", WIDTH] }],
    outputs: [{ name: "y", elemType: "FLOAT", dims: ["batch", WIDTH] }],
    nodes,
    initializers: Array.from({ length: layers }, (_, i) => ({
      name: `w${i}`,
      dims: [WIDTH, WIDTH],
      data: Float32Array.from({ length: WIDTH * WIDTH }, () => random.next() - 0.5),
    })),
  });
}

/** A network that takes milliseconds on a fast device. */
function heavy(): Uint8Array {
  const width = 512;
  const random = new SeededRandom(7);
  const layers = 8;
  return onnxModel({
    name: "heavy",
    opset: 17,
    inputs: [{ name: "x", elemType: "FLOAT", dims: ["batch", width] }],
    outputs: [{ name: `h${layers}`, elemType: "FLOAT", dims: ["batch", width] }],
    nodes: Array.from({ length: layers }, (_, i) => ({
      op: "MatMul",
      inputs: [`h${i}`.replace("h0", "x"), `w${i}`],
      outputs: [`h${i + 1}`],
    })),
    initializers: Array.from({ length: layers }, (_, i) => ({
      name: `w${i}`,
      dims: [width, width],
      data: Float32Array.from({ length: width * width }, () => (random.next() - 0.5) / 10),
    })),
  });
}

const MODELS = 20;

describe.skipIf(!hasBrowser)(`a page with models of its own${withoutBrowser}`, () => {
  const triton = new Triton();
  const models = new Map<string, Uint8Array>();
  let server: Server;
  let browser: Browser;
  let page: Page;
  let complaints: string[];
  let url: string;

  /** Calls a function of the page's script. */
  const call = <T>(name: string, ...args: unknown[]): Promise<T> =>
    page.evaluate(`tests.${name}(${args.map((one) => JSON.stringify(one)).join(", ")})`);

  beforeAll(async () => {
    for (let seed = 0; seed < MODELS; seed++) models.set(`network-${seed}`, network(seed));
    models.set("heavy", heavy());
    for (const [modelName, model] of models) {
      triton.bind({
        modelName,
        inferFunc: onnxruntime({ model, engine: "native" }),
        config: { maxBatchSize: 64 },
      });
    }
    models.set("iris", await readFile(irisModel));
    await triton.ready();
    const v2 = toNodeListener(fetchHandler(triton));
    const scripts = new Map([
      ["page.js", await script("page.mjs")],
      ["page-worker.js", await script("page-worker.mjs")],
      ["tf.js", await readFile(join(require.resolve("@tensorflow/tfjs"), "..", "tf.min.js"), "utf8")],
    ]);
    server = createServer(async (request, response) => {
      const { pathname } = new URL(request.url!, "http://localhost");
      const [, folder, file = ""] = pathname.split("/");
      if (folder === "v2") return v2(request, response);
      if (folder === "models") return void response.end(models.get(file.replace(".onnx", "")));
      const extension = pathname.split(".").at(-1)!;
      response.setHeader("content-type", TYPES[extension] ?? "text/html");
      if (scripts.has(folder!)) response.end(scripts.get(folder!));
      else if (folder === "ort") response.end(await readFile(join(ortFolder, file)));
      else
        response.end(
          '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/page.js"></script>',
        );
    });
    await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
    browser = await openBrowser(["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]);
    url = `http://localhost:${(server.address() as AddressInfo).port}/`;
    const opened = await openPage(browser, url);
    page = opened.page;
    complaints = opened.complaints;
    await page.waitForFunction("window.tests !== undefined");
  });

  afterAll(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
    await triton.close();
  });

  it("joins the calls of several components into one batch", async () => {
    expect(await call("components")).toEqual({ sizes: [5], answers: [2, 4, 6, 8, 10] });
  });

  it("streams the responses of a generator", async () => {
    expect(await call("stream")).toEqual([0, 1, 2]);
  });

  it("runs an ONNX model as WebAssembly", async () => {
    const { outputs, details, ...counts } = await call<Record<string, unknown>>("onnx", "iris", {
      measurements: [5.1, 3.5, 1.4, 0.2],
    });
    expect(details).toEqual({ executionProvider: "wasm", engine: "web" });
    expect(counts).toEqual({ executionCount: 1, inferenceCount: 1 });
    const [first] = (outputs as { probabilities: number[] }).probabilities;
    expect(first).toBeCloseTo(0.99797, 4);
  });

  it("runs a model in web workers, which get the batches that the page joins", async () => {
    const { first, bad, details, ...counts } = await call<{
      first: number[];
      bad: string;
      details: unknown[];
    }>("webWorkers");
    for (const value of first) expect(value).toBeCloseTo(0.99797, 4);
    expect(counts).toEqual({ executionCount: 2, inferenceCount: 4 });
    expect(details).toEqual([0, 1].map(() => ({ executionProvider: "wasm", engine: "web" })));
    expect(bad).toMatch(/^INVALID_ARG .*'measurements'/);
  });

  it("runs a model of TensorFlow.js", async () => {
    await page.addScriptTag({ url: "/tf.js" });
    expect(await call("tensorflow")).toEqual({
      sizes: [2],
      answers: [
        [4, 6],
        [5, 8],
      ],
    });
  });

  it("runs an ONNX model by WebGPU", async (context) => {
    const inputs = { x: Array.from({ length: WIDTH }, (_, i) => i / WIDTH) };
    const result = await call<{ details: object; answers: number[][][] } | undefined>(
      "webgpu",
      "network-1",
      inputs,
    );
    if (result === undefined) return context.skip("this Chromium has no WebGPU");
    expect(result.details).toEqual({ executionProvider: "webgpu", engine: "web" });
    const { outputs } = await call<{ outputs: { y: number[] } }>("onnx", "network-1", inputs);
    for (const [answer] of result.answers)
      answer!.forEach((value, i) => void expect(Math.abs(value - outputs.y[i]!)).toBeLessThan(1e-4));
  });

  it("runs on one thread without SharedArrayBuffer, whatever number is set", async () => {
    const { outputs, ...host } = await call<{ outputs: { probabilities: number[] } }>("threads", "iris", {
      measurements: [5.1, 3.5, 1.4, 0.2],
    });
    expect(host).toEqual({ shared: "undefined", isolated: false });
    expect(outputs.probabilities[0]).toBeCloseTo(0.99797, 4);
  });

  it("says that a processor has no SIMD", async () => {
    const old = await openBrowser(["--js-flags=--noenable-ssse3"]);
    try {
      const opened = await openPage(old, url);
      await opened.page.waitForFunction("window.tests !== undefined");
      expect(await opened.page.evaluate("tests.badModel()")).toBe(
        "UNSUPPORTED engine 'wasm': expected a host with WebAssembly with SIMD, got one without it",
      );
    } finally {
      await old.close();
    }
  });

  it("ends with a page that is closed in the middle of a run, and disturbs no other page", async () => {
    const other = await openPage(browser, url);
    await other.page.waitForFunction("window.tests !== undefined");
    const x = JSON.stringify(Array.from({ length: 512 }, () => 0.1));
    void other.page.evaluate(`tests.runForEver("heavy", { x: ${x} })`).catch(() => {});
    await other.page.waitForFunction("window.runs > 2");
    await other.page.close();
    expect(other.complaints).toEqual([]);
    expect(await call("stream")).toEqual([0, 1, 2]);
  });

  it("names what is wrong with a model that does not load", async () => {
    expect(await call("badModel")).toMatch(/^INVALID_ARG cannot load the ONNX model of 100 bytes: /);
  });

  it("gets the same answers here and from the server: 20 models", async () => {
    for (let seed = 0; seed < MODELS; seed++) {
      const name = `network-${seed}`;
      await call("openHybrid", name);
      const x = Array.from({ length: WIDTH }, (_, i) => Math.sin(seed + i));
      const [here] = await call<number[][]>("callHybrid", name, { x }, "local");
      const [there] = await call<number[][]>("callHybrid", name, { x }, "remote");
      expect(here!.length).toBe(WIDTH);
      here!.forEach((value, i) => void expect(Math.abs(value - there![i]!)).toBeLessThan(1e-4));
    }
  });

  it("asks the server on a slow device", async () => {
    await call("openHybrid", "heavy");
    const x = Array.from({ length: 512 }, (_, i) => Math.sin(i));
    const session = await page.context().newCDPSession(page);
    // Only the page becomes slow, and not the server.
    await session.send("Emulation.setCPUThrottlingRate", { rate: 20 });
    await call("time", "heavy", { x }, 30);
    const choice = async () => {
      const { localMs, remoteMs, next } = await call<{ localMs: number; remoteMs: number; next: string }>(
        "status",
        "heavy",
      );
      return { next, faster: localMs <= remoteMs ? "local" : "remote" };
    };
    let { next, faster } = await choice();
    if (next !== faster) {
      // A trial of the slower side was due. No other follows it at once.
      await call("time", "heavy", { x }, 1);
      ({ next, faster } = await choice());
    }
    expect(next).toBe(faster);
    await session.send("Emulation.setCPUThrottlingRate", { rate: 1 });
  });

  it("chooses the better side over a range of devices", { timeout: 300_000, retry: 2 }, async () => {
    const session = await page.context().newCDPSession(page);
    await call("openHybrid", "heavy");
    const row = Array.from({ length: 512 }, (_, i) => Math.sin(i));
    const x = Array.from({ length: 48 }, () => row);
    const medianOf = (all: number[]) =>
      all.toSorted((a, b) => a - b)[all.length >> 1] ?? Number.POSITIVE_INFINITY;
    for (const rate of [1, 4, 16]) {
      await session.send("Emulation.setCPUThrottlingRate", { rate });
      const calls = await call<["local" | "remote", number][]>("choices", "heavy", { x }, 60);
      const times = (side: string) => calls.filter(([one]) => one === side).map(([, ms]) => ms);
      const [[best, ofBest], [, ofOther]] = (["local", "remote"] as const)
        .map((side) => [side, medianOf(times(side))] as const)
        .toSorted(([, a], [, b]) => a - b) as [[string, number], [string, number]];
      // Where the sides are near each other, either is right. A busy machine slows both.
      if (ofOther < 2 * ofBest) continue;
      expect(times(best).length / calls.length).toBeGreaterThan(0.7);
    }
    await session.send("Emulation.setCPUThrottlingRate", { rate: 1 });
  });

  it("answers when the server is gone", async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    const x = Array.from({ length: WIDTH }, (_, i) => i / WIDTH);
    for (let i = 0; i < 5; i++) {
      for (const name of ["network-0", "network-1"]) {
        const [answer] = await call<number[][]>("callHybrid", name, { x });
        expect(answer!.length).toBe(WIDTH);
      }
    }
    expect(complaints.filter((text) => !/ERR_CONNECTION_REFUSED/.test(text))).toEqual([]);
  });
});
