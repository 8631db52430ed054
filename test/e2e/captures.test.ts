import { chmod, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "@tritonjs/cli";
import { readCapture } from "@tritonjs/cli/tools";
import { batch, Triton, TritonError } from "@tritonjs/core";
import { type CapturedRequest, type CaptureOptions, capture } from "@tritonjs/core/capture";
import { http } from "@tritonjs/http";
import { describe, expect, it, onTestFinished } from "vitest";
import { TestTerminal } from "../../packages/cli/test/support/test-terminal.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { RepositoryOnDisk } from "../support/repository-on-disk.js";
import { readTraces } from "../support/trace-file.js";

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
    const tracer = capture({ directory, rate: 1, ...(redact && { redact }), encrypt });
    const triton = new Triton({ tracer, logError: false, security: { restrictedEndpoints: [] } });
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
