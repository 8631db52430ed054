import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { Client, credentials } from "@grpc/grpc-js";
import { InferenceServerClient } from "@tritonjs/client/grpc";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { programOf } from "../deploy/front-proxy.js";
import { otherRuntime } from "../package/foreign-tools.js";
import { curlLines } from "../support/curl-line.js";
import { exampleFolder, promisedOutput, readExampleReadme } from "../support/example-readme.js";
import { expectPromisedOutput } from "../support/example-run.js";
import { fakeNvidiaSmi } from "../support/fake-nvidia-smi.js";
import { firstDifference } from "../support/first-difference.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const hasPrometheus = spawnSync("prometheus", ["--version"]).error === undefined;

const withoutPrometheus = hasPrometheus ? "" : " (skipped: there is no prometheus)";

describe("the example of monitoring", () => {
  it.skipIf(!hasPrometheus)(
    `the monitoring example shows what the rules and the dashboard see${withoutPrometheus}`,
    async () => {
      await using _ = await fakeNvidiaSmi('echo "No devices were found"');
      await expectPromisedOutput("monitoring");
    },
  );

  it("the monitoring example reads a trace id from the metrics page, and says when Prometheus is missing", async () => {
    const main = join(exampleFolder("monitoring"), "dist", "main.js");
    const program = new Program(process.execPath, [main], { cwd: repositoryRoot, env: { PATH: "" } });
    const { code, stdout, stderr } = await program.ended;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    const [exemplar, missing, ...rest] = stdout.split("\n");
    expect(exemplar).toMatch(
      /^tritonjs_request_duration_seconds_bucket\{model="double",version="1",le="[\d.]+"\} 1 # \{trace_id="0af7651916cd43dd8448eb211c80319c"\} [\d.e-]+ [\d.]+$/,
    );
    expect(missing).toMatch(/^prometheus is not installed: /);
    expect(rest).toEqual([""]);
  });
});

describe("the example of a server", () => {
  it.each([
    "grpc-streams",
    "access-control",
    "custom-metrics",
    "remote-models",
    "cloud-endpoints",
    "request-limits",
    "warm-up-and-drain",
    "load-and-replay",
    "tuning",
    "smaller-model",
    "command-line",
    "openai-endpoints",
    "tool-calls",
    "agents",
    "client-calls",
    "typed-command",
    "classification",
    "cross-origin",
    "cloud-repository",
    "grpc-reflection",
  ])("%s runs to its end and prints what its README promises", (name) => expectPromisedOutput(name));

  it.each(["dashboard", "browser-and-edge"])("%s runs once and prints what its README promises", (name) =>
    expectPromisedOutput(name, "--once"),
  );

  it.skipIf(process.platform === "win32").each(["shared-memory", "deployment"])(
    "%s runs to its end and prints what its README promises (Linux and macOS)",
    (name) => expectPromisedOutput(name),
  );
});

describe("the example replicas-behind-a-proxy", () => {
  for (const product of ["haproxy", "nginx"]) {
    const missing = programOf(product) === undefined;
    it.skipIf(missing)(
      `keeps sequences together behind ${product}${missing ? ` (skipped: no ${product} here)` : ""}`,
      () => expectPromisedOutput("replicas-behind-a-proxy", product),
    );
  }
});

const infer = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [2], data: [1, 2.5] }] });

/** What runs the servers of `Bun.serve` and `Deno.serve`. */
const RUNTIMES = { "bun.js": otherRuntime("bun"), "deno.js": otherRuntime("deno") };

/** Starts an example on a free port and resolves with its URL. */
async function start(
  name: string,
  folder: string,
  file: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ url: string; program: Program }> {
  const module = join(repositoryRoot, "examples", name, folder, file);
  const runtime = RUNTIMES[file as keyof typeof RUNTIMES];
  const [command, args] = runtime === undefined ? [process.execPath, []] : [runtime.path!, runtime.args];
  const program = new Program(command, [...args, module], {
    cwd: repositoryRoot,
    env: { ...env, PORT: "0" },
  });
  onTestFinished(() => program.signal("SIGKILL"));
  const said = await program.untilOutput("listening at ");
  const port = /:(\d+)\s*$/.exec(said)![1]!;
  expect(said.replace(port, "3000")).toMatch(promisedOutput(name));
  return { url: `http://localhost:${port}`, program };
}

/** Runs the curl lines of an example's README, and compares each answer with the line below it. */
async function expectPromisedAnswers(name: string, url: string): Promise<void> {
  const lines = curlLines(readExampleReadme(name));
  expect(lines.length).toBeGreaterThan(2);
  for (const { line, path, init, status, text } of lines) {
    const answer = await fetch(url + path, init);
    expect([line, answer.status, await answer.text()]).toEqual([line, status, expect.stringContaining(text)]);
  }
}

/** The servers of the example. The title of one that npm cannot bring here says so. */
const SERVERS = ["node-http", "express", "hono", "bun", "deno"].map((name) => {
  const runtime = RUNTIMES[`${name}.js` as keyof typeof RUNTIMES];
  const title = `${name}${runtime?.note ?? ""}`;
  return { name, title, missing: runtime !== undefined && runtime.path === undefined };
});

/** Calls the application's own service. */
function callDouble(address: string, value: number): Promise<number> {
  const client = new Client(address, credentials.createInsecure());
  onTestFinished(() => client.close());
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      "/app.Calculator/Double",
      (request: number) => Buffer.from(String(request)),
      (bytes) => Number(bytes),
      value,
      (error, answer) => (error === null ? resolve(answer!) : reject(error)),
    );
  });
}

describe("the examples of mounted servers", () => {
  it("a second service calls the models of the first by their types", async () => {
    const { url: models } = await start("mount-fetch", "dist", "express.js");
    const { url } = await start("mount-fetch", "dist", "gateway.js", { MODELS_URL: `${models}/inference` });
    expect(await (await fetch(`${url}/quadruple/2`)).json()).toEqual({ result: 8 });
    expect(await (await fetch(`${url}/countdown/3`)).json()).toEqual({ seen: [3, 2, 1] });
    const mistake = await fetch(`${url}/countdown/x`);
    expect([mistake.status, await mistake.json()]).toEqual([
      400,
      { error: expect.stringContaining("input 'from' of model 'countdown'") },
    ]);
  });
});

describe.each(SERVERS)("the v2 routes in a server of $title", ({ name, missing }) => {
  const it = test.skipIf(missing);

  it("infer, stream, reject bad requests, and leave the application its own paths", async () => {
    const { url } = await start("mount-fetch", "dist", `${name}.js`);
    expect(await (await fetch(url)).text()).toBe("hello");
    expect((await fetch(`${url}/inference/v2/health/ready`)).status).toBe(200);
    const answer = await fetch(`${url}/inference/v2/models/double/infer`, { method: "POST", body: infer });
    expect(await answer.json()).toMatchObject({ outputs: [{ name: "y", shape: [2], data: [2, 5] }] });
    const stream = await fetch(`${url}/inference/v2/models/countdown/generate_stream`, {
      method: "POST",
      body: '{"from":3}',
    });
    expect(stream.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const events = (await stream.text()).split("\n\n").filter(Boolean);
    expect(events.map((event) => JSON.parse(event.slice("data: ".length)).left)).toEqual([3, 2, 1]);
    const unknown = await fetch(`${url}/inference/v2/models/none`);
    expect([unknown.status, await unknown.text()]).toEqual([
      404,
      `{"error":"Request for unknown model: 'none' is not found"}`,
    ]);
    expect((await fetch(`${url}/inference/v2/nothing`)).status).toBe(404);
  });

  it("accept binary tensors and reject bodies over the limit", async () => {
    const { url } = await start("mount-fetch", "dist", `${name}.js`);
    const values = Float32Array.from({ length: 500_000 }, (_, index) => index);
    const json = JSON.stringify({
      inputs: [
        {
          name: "x",
          datatype: "FP32",
          shape: [values.length],
          parameters: { binary_data_size: values.byteLength },
        },
      ],
      outputs: [{ name: "y", parameters: { binary_data: true } }],
    });
    const answer = await fetch(`${url}/inference/v2/models/double/infer`, {
      method: "POST",
      headers: { "inference-header-content-length": String(json.length) },
      body: new Blob([json, values]),
    });
    const headerLength = Number(answer.headers.get("inference-header-content-length"));
    const doubled = new Float32Array((await answer.arrayBuffer()).slice(headerLength));
    expect(
      firstDifference(
        doubled,
        values.map((value) => 2 * value),
      ),
    ).toBe(-1);
    const refused = await fetch(`${url}/inference/v2/models/double/infer`, {
      method: "POST",
      headers: { "inference-header-content-length": "0" },
      body: new Uint8Array(65 * 1024 * 1024),
    }).catch((error: Error) => error);
    if (refused instanceof Response) expect(refused.status).toBe(400);
    expect((await fetch(`${url}/inference/v2/health/ready`)).status).toBe(200);
  });

  test.skipIf(missing || process.platform === "win32")("close on a signal", async () => {
    const { program } = await start("mount-fetch", "dist", `${name}.js`);
    program.signal("SIGTERM");
    const { code, stderr } = await program.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });
});

describe.each(SERVERS.filter(({ name }) => name === "bun" || name === "deno"))(
  "the v2 routes in a server of $title",
  ({ name, missing }) => {
    test.skipIf(missing)("stop the model when the client of a stream leaves", async () => {
      const { url, program } = await start("mount-fetch", "dist", `${name}.js`);
      const leaving = new AbortController();
      const init = { method: "POST", body: '{"from":1000000}', signal: leaving.signal };
      const { body } = await fetch(`${url}/inference/v2/models/countdown/generate_stream`, init);
      expect((await body!.getReader().read()).done).toBe(false);
      leaving.abort();
      await program.untilOutput("countdown stopped at ");
    });

    test.skipIf(missing)("answer requests that come together", async () => {
      const { url } = await start("mount-fetch", "dist", `${name}.js`);
      const answers = Array.from({ length: 50 }, async (_, i) => {
        const body = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [1], data: [i] }] });
        const answer = await fetch(`${url}/inference/v2/models/double/infer`, { method: "POST", body });
        return ((await answer.json()) as { outputs: { data: number[] }[] }).outputs[0]!.data[0];
      });
      expect(await Promise.all(answers)).toEqual(answers.map((_, i) => 2 * i));
    });
  },
);

describe.each(["express", "hono"])("the routes of an application of %s", (name) => {
  it("call models in process, and answer the mistake of a client with 400", async () => {
    const { url } = await start("mount-fetch", "dist", `${name}.js`);
    await expectPromisedAnswers("mount-fetch", url);
    const stream = await fetch(`${url}/countdown/3`);
    expect(stream.headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(await stream.text()).toBe("data: 3\n\ndata: 2\n\ndata: 1\n\n");
  });

  it.each([
    ["of its own", "/countdown/1000000", {}],
    ["of the protocol", "/inference/v2/models/countdown/generate_stream", { body: '{"from":1000000}' }],
  ])("stop the model when the client of a stream %s leaves", async (_, path, { body }: { body?: string }) => {
    const { url, program } = await start("mount-fetch", "dist", `${name}.js`);
    const leaving = new AbortController();
    const method = body === undefined ? "GET" : "POST";
    const { body: events } = await fetch(url + path, { method, body, signal: leaving.signal });
    const reader = events!.getReader();
    expect((await reader.read()).done).toBe(false);
    leaving.abort();
    await program.untilOutput("countdown stopped at ");
    // The only instance of the model is free again.
    expect(await (await fetch(`${url}/countdown/1`)).text()).toBe("data: 1\n\n");
  });
});

describe("a Nest application", () => {
  it("calls a model in a controller, answers mistakes with 400, and has the v2 routes", async () => {
    const { url } = await start("mount-nest", "dist", "main.js");
    await expectPromisedAnswers("mount-nest", url);
    expect((await fetch(`${url}/nothing`)).status).toBe(404);
  });

  it.skipIf(process.platform === "win32")("drains on a signal, which then ends it", async () => {
    const { program } = await start("mount-nest", "dist", "main.js");
    program.signal("SIGTERM");
    const { code, signal, stderr } = await program.ended;
    expect({ code, signal, stderr }).toEqual({ code: null, signal: "SIGTERM", stderr: "" });
  });
});

describe("the v2 routes in a fastify application", () => {
  it("share its port and hooks with its own routes, which call the model in process", async () => {
    const { url } = await start("mount-fastify", "dist", "main.js");
    await expectPromisedAnswers("mount-fastify", url);
    expect(await (await fetch(`${url}/double/4`)).json()).toEqual({ result: 8 });
    const answer = await fetch(`${url}/inference/v2/models/double/infer`, { method: "POST", body: infer });
    expect(answer.headers.get("x-served-by")).toBe("my-app");
    expect(await answer.json()).toMatchObject({ outputs: [{ data: [2, 5] }] });
    const blocked = await fetch(`${url}/inference/v2`, { headers: { "x-blocked": "1" } });
    expect([blocked.status, await blocked.json()]).toEqual([401, { error: "blocked" }]);
    expect((await fetch(`${url}/v2`)).status).toBe(404);
  });
});

describe("the v2 service in a server of grpc-js", () => {
  it("shares its port with a service of the application, which calls the model in process", async () => {
    const { url } = await start("mount-grpc-js", "dist", "main.js");
    const address = url.slice("http://".length);
    expect(await callDouble(address, 4)).toBe(8);
    const client = new InferenceServerClient(address);
    onTestFinished(() => client.close());
    const inputs = { x: { datatype: "FP32", data: [1, 2.5] } } as const;
    const result = await client.infer("double", { inputs });
    expect(result.elements("y", "FP32")).toEqual(Float32Array.of(2, 5));
  });

  it.skipIf(process.platform === "win32")("ends when it is told to", async () => {
    const { program } = await start("mount-grpc-js", "dist", "main.js");
    program.signal("SIGTERM");
    const { code, stderr } = await program.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });
});

/** Runs an example to its end, compares its output with its README, and returns its lines. */
async function run(example: string): Promise<string[]> {
  const program = Program.node(
    join(repositoryRoot, "examples", example, "dist", "main.js"),
    [],
    repositoryRoot,
  );
  onTestFinished(() => program.signal("SIGKILL"));
  const { code, stdout, stderr } = await program.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(promisedOutput(example));
  return stdout.trimEnd().split("\n");
}

describe("the pipeline examples", () => {
  it("onnx-pipeline sends text through a callback, an ONNX model and a callback", async () => {
    expect(await run("onnx-pipeline")).toEqual([
      "5.1,3.5,1.4,0.2: setosa (1.00)",
      "6.4,3.2,4.5,1.5: versicolor (1.00)",
      "7.7,2.6,6.9,2.3: virginica (1.00)",
      "in ensemble 'iris-pipeline', a line has four numbers between commas, got '5.1,3.5,one'",
    ]);
  });

  it("image-pipeline sends one picture to a classifier and a segmenter", async () => {
    const lines = await run("image-pipeline");
    expect(lines.slice(0, 8).map((line) => [...new Set(line.split(" "))].join())).toEqual(
      ["s", "s", "s", "s", "s", "s", "m", "b"], // biome-ignore format: rows of the mask
    );
    expect(lines[8]).toMatch(/^sky: (0\.[5-9]|1)/);
    expect(lines.at(-1)).toBe(
      "in ensemble 'picture', input 'image': expected an image (jpeg, png, webp, gif, tiff, avif, bmp), got 10 bytes of something else",
    );
  });

  it("accumulator keeps sums between requests, in a callback and in an ONNX model", async () => {
    expect(await run("accumulator")).toEqual([
      "accumulator: 6, 60, 0.75",
      "accumulator-onnx: 6, 60, 0.75",
      "inference request for sequence 4 to model 'accumulator' must specify the START flag on the first request of the " +
        "sequence",
    ]);
  });

  it("continuous-batching runs 32 texts in one loop, with equal results over SSE and gRPC", async () => {
    const lines = await run("continuous-batching");
    expect(lines.slice(0, 4).map((line) => /^(Alice |The rabbit|Down |Oh dear)./.test(line))).toEqual(
      [true, true, true, true], // biome-ignore format: each goes on
    );
    expect(lines[4]).toBe("SSE and gRPC agree");
    const [, texts, steps, together] = /^(\d+) texts in (\d+) steps, up to (\d+) /
      .exec(lines.at(-1)!)!
      .map(Number);
    expect(texts).toBe(32);
    // One by one, each text would need 60 steps.
    expect(steps).toBeLessThan(32 * 30);
    expect(together).toBeGreaterThan(8);
    expect(together).toBeLessThanOrEqual(32);
  });

  it("text-generation writes eight stories together, and the same story alone", async () => {
    const lines = await run("text-generation");
    expect(lines[0]).toMatch(/ lived in the .* friends from then on\./);
  });
});
