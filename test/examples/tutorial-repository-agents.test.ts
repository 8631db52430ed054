import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Program } from "../support/program.js";
import { hasPython, withoutPython } from "../support/python.js";
import { repositoryRoot } from "../support/repository.js";

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

it.skipIf(!hasPython)(`tritonjs serve runs the agents of --repoagent-directory${withoutPython}`, async () => {
  const { program, log, url } = await serve();
  expect(log).toContain("repository agent 'journal': loaded adder_approved");
  expect(await sum(url, "adder")).toEqual([6]);
  expect(await sum(url, "adder_approved")).toEqual([6]);
  program.signal("SIGTERM");
  const { code, stderr } = await program.ended;
  expect(code).toBe(0);
  expect(stderr).toMatch(/repository agent 'journal': unloaded adder_approved after [\d.]+ s/);
});

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
