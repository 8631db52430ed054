import { chmod, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "@tritonjs/cli";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { batch, sample, Triton, TritonError } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { fetchHandler, http, toNodeListener } from "@tritonjs/http";
import { type CapturedRequest, type CaptureOptions, capture } from "@tritonjs/operations/capture";
import { readCapture } from "@tritonjs/perf";
import { describe, expect, it, onTestFinished } from "vitest";
import { TestTerminal } from "../../packages/cli/test/support/test-terminal.js";
import { openGrpcJsServer } from "../support/grpc-js-server.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";
import { namesOf, readTraces, type TracedRequest, traceFile } from "../support/trace-file.js";
import { HeldModel } from "./support/held-model.js";
import { openTriton, until } from "./support/open-triton.js";

const computed = ["COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END"];

const queued = ["REQUEST_START", "QUEUE_START"];

const x = { name: "x", dtype: "INT32", shape: [1] } as const;

const y = { name: "y", dtype: "INT32", shape: [1] } as const;

function traced(): { triton: Triton; traces: () => Promise<TracedRequest[]> } {
  const file = traceFile();
  const triton = openTriton({ trace: { level: "TIMESTAMPS", rate: 1, file } });
  const config = { batching: false };
  triton.bind({
    modelName: "double",
    inputs: [x],
    outputs: [y],
    config,
    inferFunc: sample((inputs) => {
      if (inputs.x.data[0]! < 0) throw new Error("negative");
      return { y: inputs.x.data.map((value) => 2 * value) };
    }),
  });
  triton.bind({
    modelName: "stream",
    inputs: [x],
    outputs: [y],
    config: { ...config, decoupled: true },
    inferFunc: sample(function* (inputs) {
      for (let i = 0; i < 3; i++) yield { y: inputs.x };
    }),
  });
  return {
    triton,
    traces: async () => {
      await triton.close();
      return readTraces(file);
    },
  };
}

const body = (value: number) =>
  JSON.stringify({ id: "r", inputs: [{ name: "x", datatype: "INT32", shape: [1], data: [value] }] });

describe("request traces", () => {
  it("clients change trace settings over both protocols", async () => {
    const { triton } = traced();
    const { addresses } = await triton.serve();
    const http = new HttpClient(addresses.http!.url);
    const rpc = new GrpcClient(addresses.grpc!.url);
    onTestFinished(async () => {
      await http.close();
      await rpc.close();
    });
    expect(await http.updateTraceSettings({ trace_rate: "7" }, { modelName: "double" })).toMatchObject({
      trace_rate: "7",
    });
    expect(await rpc.getTraceSettings({ modelName: "double" })).toMatchObject({ trace_rate: ["7"] });
    await rpc.updateTraceSettings({ trace_rate: null }, { modelName: "double" });
    expect(await http.getTraceSettings({ modelName: "double" })).toMatchObject({ trace_rate: "1" });
  });
});

describe("tracing over HTTP", () => {
  const received = ["HTTP_RECV_START", "HTTP_RECV_END"];
  const sent = ["HTTP_SEND_START", "HTTP_SEND_END"];

  it("covers an inference from its first byte to the last byte of its answer", async () => {
    const { triton, traces } = traced();
    const { addresses } = await triton.serve();
    await (
      await fetch(`${addresses.http!.url}/v2/models/double/infer`, { method: "POST", body: body(3) })
    ).text();
    const [trace, ...more] = await traces();
    expect(more).toEqual([]);
    expect(trace).toMatchObject({ id: 1, model: "double", requestId: "r", parentId: undefined });
    expect(namesOf(trace!)).toEqual([
      ...received,
      ...queued,
      ...computed,
      "REQUEST_END",
      "INFER_RESPONSE_COMPLETE",
      ...sent,
    ]);
  });

  it("covers failed and malformed inferences until their error answer", async () => {
    const { triton, traces } = traced();
    const { addresses } = await triton.serve();
    const url = `${addresses.http!.url}/v2/models/double/infer`;
    for (const text of [body(-1), "{"]) await (await fetch(url, { method: "POST", body: text })).text();
    const [failed, bad] = await traces();
    expect(namesOf(failed!)).toEqual([
      ...received,
      ...queued,
      ...computed,
      "REQUEST_END",
      "INFER_RESPONSE_COMPLETE",
      ...sent,
    ]);
    expect(namesOf(bad!)).toEqual([...received, ...sent]);
  });

  it("covers each response of a stream", async () => {
    const { triton, traces } = traced();
    const { addresses } = await triton.serve();
    const url = `${addresses.http!.url}/v2/models/stream/generate_stream`;
    await (await fetch(url, { method: "POST", body: '{"x":[1]}' })).text();
    const [trace] = await traces();
    const names = namesOf(trace!);
    expect(names.filter((name) => name === "INFER_RESPONSE_COMPLETE")).toHaveLength(3);
    expect([names[0], names.at(-1)]).toEqual(["HTTP_RECV_START", "HTTP_SEND_END"]);
    expect(new Set(names)).toEqual(
      new Set([...received, ...queued, ...computed, "REQUEST_END", "INFER_RESPONSE_COMPLETE", ...sent]),
    );
  });

  it("writes an inference whose client leaves", async () => {
    const { triton, traces } = traced();
    const held = new HeldModel(triton, { batching: false });
    const { addresses } = await triton.serve();
    const abort = new AbortController();
    const answer = fetch(`${addresses.http!.url}/v2/models/held/infer`, {
      method: "POST",
      body: body(1),
      signal: abort.signal,
    });
    await held.reached(1);
    abort.abort();
    await expect(answer).rejects.toThrow();
    await until(() => held.signals[0]!.aborted);
    held.release();
    const [trace] = await traces();
    expect(namesOf(trace!).slice(0, 5)).toEqual([...received, ...queued, "REQUEST_END"]);
  });

  it("covers an inference of the fetch handler", async () => {
    const { triton, traces } = traced();
    const server = createServer(toNodeListener(fetchHandler(triton)));
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, resolve));
    const { port } = server.address() as AddressInfo;
    const client = new HttpClient(`http://localhost:${port}`);
    onTestFinished(() => client.close());
    const url = `http://localhost:${port}/v2/models/double/infer`;
    await (await fetch(url, { method: "POST", body: body(3) })).text();
    const [trace] = await traces();
    expect(namesOf(trace!).slice(-2)).toEqual(sent);
  });
});

describe("tracing over gRPC", () => {
  const received = ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END"];
  const sent = ["GRPC_SEND_START", "GRPC_SEND_END"];

  async function connect(triton: Triton, transport: "http2" | "grpc-js" = "http2"): Promise<GrpcClient> {
    const client = new GrpcClient(await urlOver(transport, triton));
    onTestFinished(() => client.close());
    return client;
  }

  async function urlOver(transport: "http2" | "grpc-js", triton: Triton): Promise<string> {
    if (transport === "http2") {
      const { addresses } = await triton.serve({ frontends: [grpc({ port: 0 })] });
      return addresses.grpc!.url;
    }
    const { url, close } = await openGrpcJsServer(triton);
    onTestFinished(close);
    return url;
  }

  it.each(["http2", "grpc-js"] as const)(
    "covers an inference from the wait for it to its answer (%s)",
    async (transport) => {
      const { triton, traces } = traced();
      const client = await connect(triton, transport);
      for (let i = 0; i < 2; i++) await client.infer("double", { inputs: { x: Int32Array.of(3) }, id: "g" });
      await expect(client.infer("double", { inputs: { x: Int32Array.of(-1) } })).rejects.toThrow();
      await client.close();
      const found = await traces();
      expect(found[0]).toMatchObject({ model: "double", requestId: "g" });
      for (const trace of found) {
        expect(namesOf(trace)).toEqual([
          ...received,
          ...queued,
          ...computed,
          "REQUEST_END",
          "INFER_RESPONSE_COMPLETE",
          ...sent,
        ]);
      }
      expect(found).toHaveLength(3);
    },
  );

  it("covers each request of a stream, with the first of its responses", async () => {
    const { triton, traces } = traced();
    const client = await connect(triton);
    const inputs = { x: Int32Array.of(1) };
    const requests = ["stream", "double", "double"].map((modelName) => ({ modelName, inputs }));
    const refused = { modelName: "double", inputs: {} };
    let answers = 0;
    for await (const _ of client.streamInfer([...requests, refused])) answers++;
    expect(answers).toBe(3 + 2 + 1);
    const found = await traces();
    expect(found.map(({ model }) => model)).toEqual(["stream", "double", "double", undefined]);
    for (const trace of found.slice(0, 3)) {
      const names = namesOf(trace);
      expect([names[0], names.at(-1)]).toEqual(["GRPC_WAITREAD_START", "GRPC_SEND_END"]);
      const all = [...received, ...queued, ...computed, "REQUEST_END", "INFER_RESPONSE_COMPLETE", ...sent];
      expect([...names].sort()).toEqual(all.sort());
    }
    expect(namesOf(found[3]!)).toEqual([...received, "GRPC_SEND_END"]);
  });
});

const command = join(repositoryRoot, "packages/cli/dist/main.js");

const SECRET = "Ada Lovelace";

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "captures-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

async function start(...args: string[]): Promise<Program> {
  const models = await RepositoryOnDisk.create({
    "echo/1/": "",
    "echo/config.pbtxt":
      'backend: "identity" input { name: "INPUT0" data_type: TYPE_STRING dims: 1 }' +
      ' output { name: "OUTPUT0" data_type: TYPE_STRING dims: 1 }',
  });
  onTestFinished(() => models[Symbol.asyncDispose]());
  const ports = ["http", "grpc", "metrics"].map((name) => `--${name}-port=0`);
  return Program.node(
    command,
    ["serve", `--model-repository=${models.path}`, "--http-address=127.0.0.1", ...ports, ...args],
    repositoryRoot,
  );
}

async function send(url: string, shape = [1]): Promise<void> {
  const inputs = [{ name: "INPUT0", datatype: "BYTES", shape, data: Array(shape[0]).fill(SECRET) }];
  const request = { id: "r1", parameters: { country: "de" }, inputs };
  const response = await fetch(`${url}/v2/models/echo/infer`, {
    method: "POST",
    body: JSON.stringify(request),
  });
  await response.arrayBuffer();
}

/** Serves, sends two requests, stops, and returns the files below the directory of captures. */
async function captured(directory: string, ...args: string[]): Promise<string[]> {
  const program = await start(`--capture-directory=${directory}`, ...args);
  const started = await program.untilOutput("Started Metrics Service", "stderr");
  const url = `http://${/Started HTTPService at ([\d.]+:\d+)/.exec(started)![1]}`;
  await send(url);
  await send(url, [2]);
  program.signal("SIGTERM");
  const { code, stderr } = await program.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining("Warning") });
  return (await readdir(directory)).map((name) => join(directory, name));
}

describe("tritonjs serve --capture-directory", () => {
  it("captures without trace settings, with a frontend thread", async () => {
    const directory = join(await folder(), "deep", "captures");
    const files = await captured(directory, "--capture-rate=1", "--frontend-threads=1");
    expect(await readCapture(files)).toMatchObject([
      { model: "echo", id: "r1", parameters: { country: "de" }, error: undefined },
    ]);
    expect(await Promise.all([directory, join(directory, ".."), ...files].map(modeOf))).toEqual([
      "700",
      "700",
      "600",
    ]);
  });

  it("captures beside trace files, and all such files are private in a directory that is not", async () => {
    const directory = await folder();
    await chmod(directory, 0o755);
    const [file, tape, rollouts] = ["trace.json", "tape", "rollouts"].map((name) => join(directory, name));
    const files = await captured(
      directory,
      "--capture-rate=1",
      "--trace-config=level=TENSORS",
      "--trace-config=rate=1",
      `--trace-config=triton,file=${file}`,
      `--scheduling-tape=${tape}`,
      `--rollout-directory=${rollouts}`,
    );
    expect(await readCapture(files.filter((name) => name.endsWith(".parquet")))).toHaveLength(1);
    expect(readTraces(file!).map(({ requestId }) => requestId)).toContain("r1");
    const modes = await Promise.all([directory, ...files].map(modeOf));
    expect([modes[0], ...modes.slice(1).sort()]).toEqual(["755", "600", "600", "600", "700"]);
  });

  it.each([
    [["--capture-rate=1"], "Use of '--capture-rate' requires setting '--capture-directory' as well"],
    [["--capture-directory=/dev/null/x"], "cannot use the directory of captures '/dev/null/x'"],
    [["--capture-directory=/tmp", "--capture-rate=2"], "option 'rate': expected a number from 0 to 1, got 2"],
  ])("refuses %j", async (args, text) => {
    const terminal = new TestTerminal();
    expect(await run(["serve", "--model-repository=/nosuch", ...args], terminal)).toBe(1);
    expect(terminal.errors).toContain(text);
  });
});

describe("a redacted capture", () => {
  const nested = new Error(`cause ${SECRET}`);
  const faults: readonly Error[] = [
    new Error(`cannot find ${SECRET}`, { cause: nested }),
    new TritonError("INVALID_ARG", `INVALID_ARG: got '${SECRET}'`, { cause: nested }),
    new TritonError("NOT_FOUND", SECRET, { reason: "NOT_FOUND" }),
  ];

  /** Sends requests that succeed, fail in each way and are classified, and returns what was kept and the bytes. */
  async function kept(redact: CaptureOptions["redact"]) {
    const directory = await folder();
    const files: Uint8Array[] = [];
    const encrypt = (file: Uint8Array) => {
      files.push(file);
      return file;
    };
    const captures = capture({ directory, rate: 1, ...(redact && { redact }), encrypt });
    const triton = new Triton({
      extensions: [captures],
      logError: false,
      security: { restrictedEndpoints: [] },
    });
    triton.bind({
      modelName: "m",
      inputs: [{ name: "name", dtype: "BYTES", shape: [1] }],
      outputs: [
        { name: "scores", dtype: "FP32", shape: [2] },
        { name: "echo", dtype: "BYTES", shape: [1] },
      ],
      inferFunc: batch(({ name }, { requests }) => {
        const fault = faults[Number(requests[0]!.id)];
        if (fault !== undefined) throw fault;
        return { scores: name.data.map(() => [7, 8]) as never, echo: name };
      }),
      config: { maxBatchSize: 4 },
    });
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
    for (const id of ["0", "1", "2", "ok"]) {
      await fetch(`${addresses.http!.url}/v2/models/m/infer`, {
        method: "POST",
        body: JSON.stringify({
          id,
          parameters: { name: SECRET, country: "de" },
          inputs: [{ name: "name", datatype: "BYTES", shape: [1, 1], data: [SECRET] }],
          outputs: [{ name: "scores", parameters: { classification: 1 } }, { name: "echo" }],
        }),
      }).then((response) => response.arrayBuffer());
    }
    await triton.close();
    const plain = (await readdir(directory)).map((name) => join(directory, name));
    return { rows: await readCapture(plain), bytes: Buffer.concat(files).toString("latin1") };
  }

  const drop = (request: CapturedRequest) => ({
    ...request,
    inputs: new Map<string, never>(),
    outputs: new Map<string, never>(),
    parameters: { country: request.parameters.country! },
  });

  it.each([
    ["names", ["name", "echo"]],
    ["a function", drop],
  ])("by %s has the value in no column, and the codes of errors", async (_, redact) => {
    const { rows, bytes } = await kept(redact);
    expect(rows.map(({ id, error }) => [id, error?.split(":")[0]])).toEqual([
      ["0", "INTERNAL"],
      ["1", "INVALID_ARG"],
      ["2", "NOT_FOUND"],
      ["ok", undefined],
    ]);
    expect(rows[3]!.parameters).toEqual({ country: "de" });
    expect(bytes).not.toContain("Lovelace");
  });

  it("by a function has the text that the function writes, and without redaction all", async () => {
    const named = await kept((request) => ({ ...drop(request), error: request.error && "mine" }));
    expect(named.rows.map(({ error }) => error)).toEqual(["mine", "mine", "mine", undefined]);
    const { rows, bytes } = await kept(undefined);
    expect(rows[2]!.error).toBe(`NOT_FOUND: ${SECRET}`);
    expect(bytes).toContain("Lovelace");
  });
});
