import { createServer } from "node:net";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { type Frontend, sample, Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { irisModel } from "../support/iris.js";
import { openTriton, serveAndConnect } from "./support/open-triton.js";

describe("serve()", () => {
  it("opens HTTP, gRPC and metrics by default, on localhost", async () => {
    const triton = openTriton({ id: "mine" });
    bindDouble(triton);
    const { addresses } = await triton.serve();
    expect(Object.keys(addresses).sort()).toEqual(["grpc", "http", "metrics"]);
    for (const { host, port, url } of Object.values(addresses)) {
      expect(host).toBe("localhost");
      expect(port).toBeGreaterThan(0);
      expect(url).toContain(`localhost:${port}`);
    }
    const get = async (url: string) => (await fetch(url)).text();
    expect(JSON.parse(await get(`${addresses.http!.url}/v2`))).toMatchObject({ name: "mine" });
    expect(await get(`${addresses.metrics!.url}/metrics`)).toContain('model="double"');
  });

  it("opens only allowed frontends", async () => {
    const triton = openTriton({ allowGrpc: false, allowMetrics: false });
    expect(Object.keys((await triton.serve()).addresses)).toEqual(["http"]);
  });

  it("fails when all frontends are switched off", async () => {
    const triton = openTriton({ allowHttp: false, allowGrpc: false, allowMetrics: false });
    await expect(triton.serve()).rejects.toMatchObject({
      code: "UNSUPPORTED",
      message: expect.stringContaining("all frontends are switched off; switch one on"),
    });
  });

  it("waits until the models are loaded", async () => {
    const triton = openTriton();
    const iris = triton.bind({ modelName: "iris", inferFunc: onnxruntime({ model: irisModel }) });
    expect(iris.instances().map(({ healthy }) => healthy)).toEqual([false]);
    await serveAndConnect(triton);
    expect(iris.instances().map(({ healthy }) => healthy)).toEqual([true]);
    expect(triton.service.isReady()).toBe(true);
  });

  it("opens nothing when a model fails to load, and names the model and the reason", async () => {
    const triton = openTriton();
    bindDouble(triton);
    triton.bind({
      modelName: "broken",
      inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
      inferFunc: new URL("data:text/javascript,throw new Error('no weights')"),
    });
    const frontend = spyFrontend();
    await expect(triton.serve({ frontends: [frontend] })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringMatching(/^failed to load model 'broken' version 1: .*no weights/),
    });
    expect(frontend.start).not.toHaveBeenCalled();
  });

  it("closes opened frontends when a port is taken, and can be called again", async () => {
    const taken = await listen(0);
    const triton = openTriton();
    bindDouble(triton);
    const first = spyFrontend();
    const frontends = [first, http({ port: taken })];
    await expect(triton.serve({ frontends })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining(`port ${taken} is already in use`),
    });
    expect(first.start).toHaveBeenCalledOnce();
    expect(first.stop).toHaveBeenCalledOnce();
    const [client] = await serveAndConnect(triton);
    expect((await client!.infer(doubleCall)).outputs[0]!.elements).toEqual([4]);
  });

  it("is rejected the second time, and after close", async () => {
    const triton = openTriton();
    await triton.serve();
    await expect(triton.serve()).rejects.toMatchObject({ code: "ALREADY_EXISTS" });
    await triton.close();
    await expect(triton.serve()).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it("is undone by close: the ports are free again", async () => {
    const triton = openTriton();
    const { addresses } = await triton.serve();
    await triton.close();
    for (const { port } of Object.values(addresses)) await listen(port);
  });
});

describe("a Triton that does not serve", () => {
  it("answers in process, and may be closed more than once", async () => {
    const triton = new Triton();
    const double = bindDouble(triton);
    const { y } = await double.infer({ x: [3] });
    expect([...y.data]).toEqual([6]);
    await Promise.all([triton.close(), triton.close()]);
    await triton[Symbol.asyncDispose]();
    await expect(double.infer({ x: [3] })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(() => bindDouble(triton)).toThrow("closed");
  });
});

const doubleCall = {
  model: "double",
  inputs: [{ name: "x", datatype: "FP32", shape: [1], elements: [2] }],
} as const;

function bindDouble(triton: Triton) {
  return triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: sample(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
  });
}

function spyFrontend() {
  return {
    name: "spy",
    start: vi.fn<Frontend["start"]>(async () => ({ host: "localhost", port: 1, url: "spy" })),
    stop: vi.fn<Frontend["stop"]>(async () => {}),
  };
}

/** Listens on a port of localhost until the end of the test. */
async function listen(port: number): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(port, "localhost", resolve);
  });
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
