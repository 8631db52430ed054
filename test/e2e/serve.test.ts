import { once } from "node:events";
import { type AddressInfo, createServer, Server } from "node:net";
import { join } from "node:path";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { run } from "@tritonjs/cli";
import { type Frontend, type Logger, sample, Triton } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http, metrics } from "@tritonjs/http";
import { serviceOf } from "@tritonjs/server";
import { afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { TestTerminal } from "../../packages/cli/test/support/test-terminal.js";
import { RepositoryFolder } from "../golden/support/repository-folder.js";
import { promisedOutput } from "../support/example-readme.js";
import { irisModel } from "../support/iris.js";
import { type Ended, Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { openTriton, serveAndConnect } from "./support/open-triton.js";
import { curlLines, startQuickstart } from "./support/quickstart.js";

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
    expect(serviceOf(triton).isReady()).toBe(true);
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

describe("the program tritonjs", () => {
  const command = join(repositoryRoot, "packages/cli/dist/main.js");

  const folders: RepositoryFolder[] = [];

  afterEach(async () => {
    for (const folder of folders.splice(0)) await folder.remove();
  });

  /** A repository with a model that returns its input. */
  async function repository(parameters: Readonly<Record<string, number>> = {}): Promise<string> {
    const settings = Object.entries(parameters).map(
      ([key, value]) => `parameters { key: "${key}" value { string_value: "${value}" } }\n`,
    );
    const folder = await RepositoryFolder.create({
      "echo/1/": "",
      "echo/config.pbtxt":
        `backend: "identity"\n${settings.join("")}` +
        'input { name: "INPUT0" data_type: TYPE_FP32 dims: 1 }\noutput { name: "OUTPUT0" data_type: TYPE_FP32 dims: 1 }\n',
    });
    folders.push(folder);
    return folder.path;
  }

  const ADDRESSES = ["--http-address=127.0.0.1", "--http-port=0", "--grpc-port=0", "--metrics-port=0"];

  function serve(path: string, ...args: string[]): Program {
    const all = ["serve", `--model-repository=${path}`, ...ADDRESSES, ...args];
    return Program.node(command, all, repositoryRoot);
  }

  /** Runs the command in this process, where it ends by itself. */
  async function serveInProcess(path: string, ...args: string[]): Promise<{ code: number; errors: string }> {
    const terminal = new TestTerminal();
    const code = await run(["serve", `--model-repository=${path}`, ...ADDRESSES, ...args], terminal);
    return { code, errors: terminal.errors };
  }

  /** The URL of a started server. */
  async function urlOf(program: Program): Promise<string> {
    const text = await program.untilOutput("Started Metrics Service", "stderr");
    return `http://${/Started HTTPService at ([\d.]+:\d+)/.exec(text)![1]}`;
  }

  /** Sends a request and resolves once the server has it; `answer` is its answer or the error. */
  async function ask(program: Program, url: string) {
    const body = JSON.stringify({ inputs: [{ name: "INPUT0", datatype: "FP32", shape: [1], data: [7] }] });
    const answer = fetch(`${url}/v2/models/echo/infer`, { method: "POST", body }).then(
      async (response) => ({ status: response.status, body: await response.json() }),
      () => "no answer",
    );
    await program.untilOutput("HTTP request: POST /v2/models/echo/infer", "stderr");
    // A later request is answered only after the first one is queued.
    await fetch(`${url}/v2/health/ready`);
    return { answer };
  }

  const answered = {
    status: 200,
    body: expect.objectContaining({ outputs: [expect.objectContaining({ data: [7] })] }),
  };

  describe("the serve command", () => {
    it("answers running requests after SIGTERM and exits 0", async () => {
      const program = serve(await repository({ execute_delay_ms: 700 }), "--log-verbose=1");
      const { answer } = await ask(program, await urlOf(program));
      program.signal("SIGTERM");
      expect(await answer).toEqual(answered);
      const { code, stdout, stderr } = await program.ended;
      expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
      expect(stderr).toContain("Signal (15) received.");
    });

    it("cuts off requests that exceed --exit-timeout-secs and exits 1", async () => {
      const path = await repository({ execute_delay_ms: 600_000 });
      const program = serve(path, "--log-verbose=1", "--exit-timeout-secs=0");
      const { answer } = await ask(program, await urlOf(program));
      program.signal("SIGTERM");
      const { code, stderr } = await program.ended;
      expect(code).toBe(1);
      expect(stderr).toContain("Exit timeout expired. Exiting immediately.");
      expect(await answer).not.toEqual(answered);
    });

    it("ends at once on a second signal", async () => {
      const program = serve(await repository({ execute_delay_ms: 600_000 }), "--log-verbose=1");
      const { answer } = await ask(program, await urlOf(program));
      program.signal("SIGINT");
      expect(await program.untilOutput("Waiting for in-flight requests", "stderr")).toContain(
        "Signal (2) received.",
      );
      program.signal("SIGINT");
      expect((await program.ended).code).toBe(1);
      expect(await answer).toBe("no answer");
    });

    it("does not wait for loading models when it is stopped", async () => {
      const program = serve(await repository({ creation_delay_sec: 600 }));
      await program.untilOutput("loading: echo:1", "stderr");
      program.signal("SIGTERM");
      expect((await program.ended).code).toBe(0);
    });

    it("exits 1 when a port is taken, and names it", async () => {
      const taken = createServer();
      await once(taken.listen(0, "127.0.0.1"), "listening");
      try {
        const { port } = taken.address() as AddressInfo;
        const { code, errors } = await serveInProcess(await repository(), `--http-port=${port}`);
        expect(code).toBe(1);
        expect(errors).toContain(
          `failed to start HTTP service: Unavailable - Socket '127.0.0.1:${port}' already in use`,
        );
        expect(errors).toContain("Choose another port with --http-port.");
      } finally {
        taken.close();
      }
    });

    it("exits 1 when a model does not load, and serves the others with --exit-on-error=false", async () => {
      const path = await repository();
      await folders[0]!.write({ "bad/1/": "", "bad/config.pbtxt": 'backend: "nosuch"' });
      const { code, errors } = await serveInProcess(path);
      expect(code).toBe(1);
      expect(errors).toContain("error: creating server: Internal - failed to load all models");
      const program = serve(path, "--exit-on-error=false");
      const url = await urlOf(program);
      expect((await fetch(`${url}/v2/models/echo/ready`)).status).toBe(200);
      expect((await fetch(`${url}/v2/health/ready`)).status).toBe(400);
      program.signal("SIGTERM");
      expect((await program.ended).code).toBe(0);
    });

    it("rejects bad options on standard error", async () => {
      const terminal = new TestTerminal();
      expect(await run(["serve", "--nosuch"], terminal)).toBe(1);
      expect(terminal.output).toBe("");
      expect(terminal.errors).toMatch(/^tritonjs: unrecognized option '--nosuch'\nUsage: tritonjs serve/);
    });
  });
});

describe("faults of accepting connections", () => {
  it("a connection that cannot be accepted leaves each frontend listening and logs one warning", async () => {
    const listening = new Set<Server>();
    const { listen } = Server.prototype;
    const spy = vi.spyOn(Server.prototype, "listen").mockImplementation(function (
      this: Server,
      ...args: Parameters<Server["listen"]>
    ) {
      listening.add(this);
      return listen.apply(this, args);
    });
    onTestFinished(() => spy.mockRestore());
    const warnings: string[] = [];
    const logger: Logger = { error() {}, warn: (line) => void warnings.push(line), info() {}, debug() {} };
    const triton = openTriton({ logger });
    const { addresses } = await triton.serve({
      frontends: [http({ port: 0 }), metrics({ port: 0 }), grpc({ port: 0 })],
    });
    const fault = Object.assign(new Error("accept EMFILE"), { code: "EMFILE" });
    for (const server of listening) for (let i = 0; i < 3; i++) server.emit("error", fault);
    expect(warnings.filter((line) => line.includes("EMFILE")).sort()).toEqual([
      "grpc cannot accept connections: accept EMFILE",
      "http cannot accept connections: accept EMFILE",
      "metrics cannot accept connections: accept EMFILE",
    ]);
    expect((await fetch(`${addresses.http!.url}/v2/health/live`)).status).toBe(200);
  });
});

describe("the quick start with --once", () => {
  let ended: Ended;
  beforeAll(async () => {
    ended = await startQuickstart(["--once"]).ended;
  });

  it("exits 0 and writes no errors", () => {
    expect(ended).toMatchObject({ code: 0, signal: null, stderr: "" });
  });

  it("prints what its README promises", () => {
    expect(ended.stdout).toMatch(promisedOutput("quickstart"));
  });

  it("calls the callback in four ways and prints the answers next to the expected one", () => {
    const [, , answers] = /(expected y = \[2, 3, 5\])\n((?: {2}.* y = .*\n)+)/.exec(ended.stdout)!;
    expect(answers!.trimEnd().split("\n")).toEqual([
      "  in process   y = [2, 3, 5]",
      "  HTTP JSON    y = [2, 3, 5]",
      "  HTTP binary  y = [2, 3, 5]",
      "  gRPC         y = [2, 3, 5]",
    ]);
  });

  it("prints the classifier's answers next to the expected labels, for each species and client", () => {
    const rows = [...ended.stdout.matchAll(/^ {2}(\w+ ?\w+) +\[[\d.,]+\] +-> (\w+) +expected (\w+)$/gm)].map(
      ([, way, answer, expected]) => ({ way, answer, expected }),
    );
    expect(new Set(rows.map(({ way }) => way))).toEqual(
      new Set(["in process", "HTTP JSON", "HTTP binary", "gRPC"]),
    );
    expect(new Set(rows.map(({ expected }) => expected))).toEqual(
      new Set(["setosa", "versicolor", "virginica"]),
    );
    expect(rows.filter(({ answer, expected }) => answer === expected).length).toBeGreaterThan(10);
  });

  it("classifies all 150 flowers, at least 97 of 100 correctly", () => {
    const counts = [...ended.stdout.matchAll(/(\d+) of (\d+) right/g)];
    const sum = (column: number) => counts.reduce((total, count) => total + Number(count[column]), 0);
    expect(counts).toHaveLength(4);
    expect(sum(2)).toBe(150);
    expect(sum(1) / sum(2)).toBeGreaterThanOrEqual(0.97);
  });

  it("shows that requests were batched: fewer executions than requests", () => {
    const { requests, executions, batches } = batchesOf(ended.stdout, "iris");
    expect(requests).toBe(150);
    expect(executions).toBeLessThan(requests);
    expect(batches.reduce((sum, { count, size }) => sum + count * size, 0)).toBe(requests);
    expect(batches.reduce((sum, { count }) => sum + count, 0)).toBe(executions);
    expect(Math.max(...batches.map(({ size }) => size))).toBeGreaterThan(1);
    expect(batchesOf(ended.stdout, "linear").requests).toBe(4);
  });

  it("prints its addresses and lines to paste for both models", () => {
    const { stdout } = ended;
    const http = /^HTTP +(http:\/\/localhost:\d+)$/m.exec(stdout)?.[1];
    const metrics = /^metrics +(http:\/\/localhost:\d+\/metrics)$/m.exec(stdout)?.[1];
    expect(stdout).toMatch(/^gRPC +localhost:\d+$/m);
    expect(curlLines(stdout).map(({ url }) => url)).toEqual([
      `${http}/v2/health/ready`,
      `${http}/v2/models/iris`,
      `${http}/v2/models/linear/infer`,
      `${http}/v2/models/iris/infer`,
      `${http}/v2/models/iris/stats`,
      metrics,
    ]);
  });
});

function batchesOf(stdout: string, model: string) {
  const line = new RegExp(`^${model}: (\\d+) requests in (\\d+) executions; batches: (.*)$`, "m").exec(
    stdout,
  );
  const batches = [...line![3]!.matchAll(/(\d+) of (\d+)/g)].map(([, count, size]) => ({
    count: Number(count),
    size: Number(size),
  }));
  return { requests: Number(line![1]), executions: Number(line![2]), batches };
}
