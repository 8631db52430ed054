import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { run } from "@tritonjs/cli";
import { afterEach, describe, expect, it } from "vitest";
import { TestTerminal } from "../../packages/cli/test/support/test-terminal.js";
import { RepositoryFolder } from "../golden/support/repository-folder.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

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
