import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { readArguments } from "@tritonjs/cli";
import { describe, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { Program } from "../support/program.js";
import { hasPython, pythonProgram, withoutPython } from "../support/python.js";
import { repositoryRoot } from "../support/repository.js";

const tutorial = join(repositoryRoot, "examples/tutorials/falcon");
const { services } = parse(readFileSync(join(tutorial, "compose.yaml"), "utf8"));
const { server, client } = services;
const dockerfile = readFileSync(join(repositoryRoot, "deploy/Dockerfile"), "utf8");

const PROMPT = "How can you be";
const ANSWER = "How can you be so sure that it will rain, said the owl to the fox.";

describe("the compose file", () => {
  /** The keys of a service that compose knows, as far as such files use them. */
  const KEYS = new Set([
    ...["image", "build", "command", "entrypoint", "environment", "depends_on", "healthcheck", "ports"],
    ...["volumes", "read_only", "tmpfs", "shm_size", "stop_grace_period"],
  ]);

  it("has a server and a client, with keys of the format", () => {
    expect(Object.keys(services)).toEqual(["server", "client"]);
    for (const service of Object.values<object>(services)) {
      expect(Object.keys(service).filter((key) => !KEYS.has(key))).toEqual([]);
    }
  });

  it("builds the image of the project, which both services run", () => {
    const { context, dockerfile: file, args } = server.build;
    expect(existsSync(join(tutorial, context, file))).toBe(true);
    expect(resolve(tutorial, context)).toBe(resolve(repositoryRoot));
    for (const name of Object.keys(args)) expect(dockerfile).toMatch(new RegExp(`^ARG ${name}\\b`, "m"));
    expect(dockerfile).toMatch(new RegExp(`^FROM .* AS ${args.SOURCE}$`, "m"));
    const { version } = JSON.parse(readFileSync(join(repositoryRoot, "packages/cli/package.json"), "utf8"));
    expect([server.image, client.image]).toEqual([`tritonjs:${version}`, `tritonjs:${version}`]);
  });

  it("mounts folders that exist, read only", () => {
    for (const volume of [...server.volumes, ...client.volumes]) {
      const [from, , mode] = volume.split(":");
      expect(existsSync(join(tutorial, from))).toBe(true);
      expect(mode).toBe("ro");
    }
  });

  it("starts the client when the model is ready, and gives the server time to stop", () => {
    expect(client.depends_on).toEqual({ server: { condition: "service_healthy" } });
    expect(client.environment.TRITON_URL).toBe("http://server:8000");
    const [command, ...args] = server.command;
    const { values, warnings } = readArguments(args, {});
    expect({ command, warnings, port: values["http-port"] }).toEqual({
      command: "serve",
      warnings: [],
      port: 8000,
    });
    expect(Number.parseInt(server.stop_grace_period, 10)).toBeGreaterThan(values["exit-timeout-secs"]);
  });
});

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

it.skipIf(!hasPython)(
  `the containers' commands answer the prompt without containers${withoutPython}`,
  async () => {
    const command = outside(server.command, server.volumes);
    const addresses = ["--http-address=127.0.0.1", "--http-port=0", "--allow-grpc=false", "--metrics-port=0"];
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
