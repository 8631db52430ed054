import { readFileSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { hasPython, pythonProgram, withoutPython } from "../support/python.js";
import { repositoryRoot } from "../support/repository.js";

describe("the Python model example", () => {
  it.skipIf(!hasPython)(`the Python model example serves its model${withoutPython}`, async () => {
    const main = join(repositoryRoot, "examples", "python-model", "dist", "main.js");
    const { code, stdout } = await Program.node(main, [], repositoryRoot).ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(promisedOutput("python-model"));
  });
});

const tutorial = join(repositoryRoot, "examples/tutorials/falcon");

const { services } = parse(readFileSync(join(tutorial, "compose.yaml"), "utf8"));

const { server, client } = services;

const PROMPT = "How can you be";

const ANSWER = "How can you be so sure that it will rain, said the owl to the fox.";

/** A command of the compose file, for this machine: paths of volumes and the server's address are replaced. */
function outside(args: readonly string[], volumes: readonly string[], url = ""): string[] {
  return args.map((arg) => {
    let text = arg.replace("http://127.0.0.1:8000", url);
    for (const volume of volumes) {
      const [from = "", to = ""] = volume.split(":");
      text = text.replace(new RegExp(`(^|=)${to}(?=/|$)`), (_, start) => `${start}${join(tutorial, from)}`);
    }
    return text;
  });
}

describe("the tutorial about Falcon", () => {
  it.skipIf(!hasPython)(
    `the containers' commands answer the prompt without containers${withoutPython}`,
    async () => {
      const command = outside(server.command, server.volumes);
      const addresses = [
        "--http-address=127.0.0.1",
        "--http-port=0",
        "--allow-grpc=false",
        "--metrics-port=0",
      ];
      const main = join(repositoryRoot, "packages/cli/dist/main.js");
      const serving = Program.node(main, [...command, ...addresses], repositoryRoot);
      onTestFinished(() => serving.signal("SIGKILL"));
      const log = await serving.untilOutput("Started Metrics Service", "stderr");
      const url = `http://${/Started HTTPService at ([\d.]+:\d+)/.exec(log)![1]}`;

      const [probe, program, ...args] = server.healthcheck.test;
      expect([probe, program]).toEqual(["CMD", "node"]);
      const check = () => new Program(process.execPath, outside(args, [], url), { cwd: tutorial }).ended;
      expect((await check()).code).toBe(0);

      const [node, ...clientArgs] = outside([...client.entrypoint, ...client.command], client.volumes);
      expect(node).toBe("node");
      const asking = new Program(process.execPath, clientArgs, { cwd: tutorial, env: { TRITON_URL: url } });
      expect(await asking.ended).toMatchObject({ code: 0, stdout: `${ANSWER}\n` });

      const body = { inputs: [{ name: "text_input", datatype: "BYTES", shape: [1], data: [PROMPT] }] };
      const answer = await fetch(`${url}/v2/models/falcon7b/infer`, {
        method: "POST",
        body: JSON.stringify(body),
      });
      expect(await answer.json()).toMatchObject({
        model_name: "falcon7b",
        outputs: [{ name: "text_output", datatype: "BYTES", shape: [1], data: [ANSWER] }],
      });

      serving.signal("SIGTERM");
      expect((await serving.ended).code).toBe(0);
      expect((await check()).code).toBe(1);
    },
  );

  it.skipIf(!hasPython)(`the script trains weights that the model reads${withoutPython}`, async () => {
    const folder = await mkdtemp(join(tmpdir(), "falcon-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const weights = join(folder, "weights.npz");
    const run = (...args: string[]) =>
      new Program(pythonProgram, args, {
        cwd: tutorial,
        env: { PYTHONDONTWRITEBYTECODE: "1", OMP_NUM_THREADS: "1" },
      }).ended;
    expect(await run("train_falcon.py", weights, "1")).toMatchObject({ code: 0, stderr: "" });
    const model = join(tutorial, "models/falcon7b/1");
    const read = `import sys; sys.path.insert(0, ${JSON.stringify(model)}); import falcon; print(len(falcon.Falcon(${JSON.stringify(weights)}).generate("How", 5)))`;
    expect(await run("-c", read)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[3-8]\n$/) });
    expect((await stat(join(model, "weights.npz"))).size).toBeLessThan(300_000);
  });
});

describe("the tutorial about repository agents", () => {
  const tutorial = join(repositoryRoot, "examples/tutorials/repository-agents");

  /** Serves the models of the tutorial after changes to their files. @returns the server's process and its URL */
  async function serve(changes: Readonly<Record<string, readonly [string, string]>> = {}) {
    const models = await mkdtemp(join(tmpdir(), "agents-"));
    onTestFinished(() => rm(models, { recursive: true }));
    await cp(join(tutorial, "models"), models, { recursive: true });
    for (const [file, [from, to]] of Object.entries(changes)) {
      const path = join(models, file);
      await writeFile(path, (await readFile(path, "utf8")).replace(from, to));
    }
    const program = Program.node(
      join(repositoryRoot, "packages/cli/dist/main.js"),
      [
        "serve",
        `--model-repository=${models}`,
        "--repoagent-directory=examples/tutorials/repository-agents/agents",
        "--exit-on-error=false",
        "--http-address=127.0.0.1",
        "--http-port=0",
        "--allow-grpc=false",
        "--metrics-port=0",
      ],
      repositoryRoot,
    );
    onTestFinished(() => program.signal("SIGKILL"));
    const log = await program.untilOutput("Started Metrics Service", "stderr");
    return { program, log, url: `http://${/Started HTTPService at ([\d.]+:\d+)/.exec(log)![1]}` };
  }

  async function sum(url: string, model: string): Promise<unknown> {
    const inputs = [{ name: "NUMBERS", datatype: "FP32", shape: [1, 3], data: [1, 2, 3] }];
    const response = await fetch(`${url}/v2/models/${model}/infer`, {
      method: "POST",
      body: JSON.stringify({ inputs }),
    });
    const { outputs, error } = (await response.json()) as { outputs?: { data: number[] }[]; error?: string };
    return outputs?.[0]?.data ?? error;
  }

  it.skipIf(!hasPython)(
    `tritonjs serve runs the agents of --repoagent-directory${withoutPython}`,
    async () => {
      const { program, log, url } = await serve();
      expect(log).toContain("repository agent 'journal': loaded adder_approved");
      expect(await sum(url, "adder")).toEqual([6]);
      expect(await sum(url, "adder_approved")).toEqual([6]);
      program.signal("SIGTERM");
      const { code, stderr } = await program.ended;
      expect(code).toBe(0);
      expect(stderr).toMatch(/repository agent 'journal': unloaded adder_approved after [\d.]+ s/);
    },
  );

  it.skipIf(!hasPython)(`an agent's refusal fails its model alone${withoutPython}`, async () => {
    const { url } = await serve({
      "adder/1/model.py": ["np.sum", "np.max"],
      "adder_approved/config.pbtxt": ['"ada"', '"mallory"'],
    });
    const response = await fetch(`${url}/v2/repository/index`, { method: "POST" });
    expect(await response.json()).toEqual([
      {
        name: "adder",
        state: "UNAVAILABLE",
        reason: expect.stringMatching(/: Mismatched MD5 hash for file 1\/model\.py, expect: \w+, got: \w+$/),
      },
      {
        name: "adder_approved",
        state: "UNAVAILABLE",
        reason: expect.stringContaining("expected approved_by to be one of ada, grace, got mallory"),
      },
    ]);
  });
});

const locustfile = join(repositoryRoot, "examples/tutorials/load/locustfile.py");

const standIn = join(repositoryRoot, "test/examples/locust-stand-in/locust.py");

/** Runs the locustfile with a stand-in of Locust. @returns requests and failures by name */
async function load(fails: boolean): Promise<unknown> {
  const triton = new Triton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
  onTestFinished(() => triton.close());
  triton.bind({
    modelName: "echo",
    inputs: [
      { name: "x", dtype: "FP32", shape: [-1] },
      { name: "text", dtype: "BYTES", shape: [1] },
    ],
    outputs: [{ name: "y", dtype: "BYTES", shape: [1] }],
    inferFunc: (requests) =>
      requests.map(({ inputs: { x, text } }) => {
        expect([x.shape, text.shape]).toEqual([
          [2, 8],
          [2, 1],
        ]);
        if (fails) throw new Error("no weights");
        return { y: text };
      }),
    config: { maxBatchSize: 4 },
  });
  const { addresses } = await triton.serve({ frontends: [http({ port: 0, address: "127.0.0.1" })] });
  const args = [standIn, locustfile, `--host=${addresses.http!.url}`, "--model=echo", "--rows=2"];
  const { code, stdout, stderr } = await new Program(pythonProgram, args, { cwd: repositoryRoot }).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

const read = { requests: 2, failures: [] };

describe("the tutorial about load", () => {
  it.skipIf(!hasPython)(`a server answers each request of the locustfile${withoutPython}`, async () => {
    const sent = { requests: 10, failures: [] };
    expect(await load(false)).toEqual({
      config: read,
      metadata: read,
      "infer as JSON": sent,
      "infer in binary": sent,
    });
  });

  it.skipIf(!hasPython)(`the locustfile reports each failed request${withoutPython}`, async () => {
    const failures = Array(10).fill(expect.stringContaining("no weights"));
    expect(await load(true)).toMatchObject({
      "infer as JSON": { failures },
      "infer in binary": { failures },
    });
  });
});
