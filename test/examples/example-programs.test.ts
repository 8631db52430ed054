import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { forest } from "../../examples/custom-backend/tree-backend/index.js";
import { classifyModel, normalizeModel } from "../../examples/model-repository/flower-models.js";
import { curlLines } from "../support/curl-line.js";
import { exampleFolder, promisedOutput, readExampleReadme } from "../support/example-readme.js";
import { expectPromisedOutput } from "../support/example-run.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

describe("the serving example", () => {
  it.each([
    "decorators",
    "tree-ensemble",
    "response-cache",
    "rate-limiter",
    "priorities",
    "ragged-batches",
    "iterative-sequences",
    "own-batcher",
    "own-extension",
  ])("%s runs to its end and prints what its README promises", (name) => expectPromisedOutput(name));
});

const folder = join(repositoryRoot, "examples", "model-repository");

describe("the model repository example", () => {
  it.each([
    ["normalize", normalizeModel],
    ["classify", classifyModel],
  ])("the script makes the model %s as it is checked in", async (name, model) => {
    const checkedIn = await readFile(join(folder, "models", name, "1", "model.onnx"));
    expect(Buffer.from(model()).equals(checkedIn)).toBe(true);
  });
});

describe("the custom backend example", () => {
  const folder = join(repositoryRoot, "examples", "custom-backend");

  it("serves its models", async () => {
    const { code, stdout } = await Program.node(join(folder, "dist", "main.js"), [], repositoryRoot).ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(promisedOutput("custom-backend"));
  });

  it("the index names the reason that the custom backend gives for a broken file", async () => {
    const models = await mkdtemp(join(tmpdir(), "forests-"));
    onTestFinished(() => rm(models, { recursive: true }));
    await cp(join(folder, "models"), models, { recursive: true });
    await writeFile(
      join(models, "flowers", "1", "trees.json"),
      '{ "features": 1, "classes": 1, "trees": [5] }',
    );
    const logger = { error() {}, warn() {}, info() {}, debug() {} };
    await using triton = new Triton({
      logger,
      extensions: [repository({ modelRepository: models, backends: { forest } })],
    });
    await triton.ready().catch(() => {});
    expect((await serviceOf(triton).repositoryIndex(false))[0]!.reason).toMatch(
      /cannot use forest '.*trees.json': a tree names a feature or a class that does not exist/,
    );
  });
});

describe("the variable-length example", () => {
  it("runs texts of any length in few batches, and answers each as if it ran alone", async () => {
    const main = join(repositoryRoot, "examples", "variable-length", "dist", "main.js");
    const { code, stdout } = await Program.node(main, [], repositoryRoot).ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(promisedOutput("variable-length"));
    const together = stdout
      .split("\n")
      .filter((line) => line.startsWith("a batch of"))
      .slice(0, 3);
    expect(together.sort()).toEqual([
      "a batch of 1 texts, each as 32 tokens",
      "a batch of 2 texts, each as 30 tokens",
      "a batch of 5 texts, each as 8 tokens",
    ]);
    expect(stdout).toContain("32 tokens: 32 weights");
    expect(stdout).toContain("each answer is that of the text alone: yes");
    expect(stdout).toContain("why batches were cut: COST, DELAY");
  });
});

describe("the observed application", () => {
  it("shows its model in its own log, metrics and traces", async () => {
    const module = join(exampleFolder("observed-app"), "dist", "main.js");
    const program = new Program(process.execPath, [module], { cwd: repositoryRoot, env: { PORT: "0" } });
    onTestFinished(() => program.signal("SIGKILL"));
    const [, port] = /127\.0\.0\.1:(\d+)/.exec(await program.untilOutput("listening at "))!;
    const lines = curlLines(readExampleReadme("observed-app"));
    expect(lines).toHaveLength(5);
    for (const { line, path, init, status, text } of lines) {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, init);
      expect([line, answer.status, await answer.text()]).toEqual([
        line,
        status,
        expect.stringContaining(text),
      ]);
    }
    const printed = await program.untilOutput("failed: ");
    expect(printed.replace(port!, "3000")).toMatch(promisedOutput("observed-app"));
    const [asks, failure] = printed.trim().split("\n").slice(-2);
    expect(JSON.parse(failure!).trace_id).toBe(JSON.parse(asks!).trace_id);
  });
});

const textOf = (path: string) => readFileSync(join(repositoryRoot, "examples", path), "utf8");

/** The files of each app that call models. The definitions of models in TypeScript are in other files. */
const APPS = {
  "a page": ["browser-and-edge/page/page.ts"],
  "Next.js": ["mount-next/inference.ts", "mount-next/app/api/flowers/route.ts"],
  "a worker in Hono": ["browser-and-edge/edge-worker.ts"],
  "Express with a second service": ["mount-fetch/express.ts", "mount-fetch/gateway.ts"],
  "a command": ["typed-command/flower.ts", "typed-command/main.ts"],
};

describe("an example app that calls models by their types", () => {
  it.each(Object.entries(APPS))("%s has no specification of a tensor", (_, paths) => {
    for (const path of paths) {
      const specifications = textOf(path).match(
        /\b(?:dtype|datatype|data_type|shape|dims|inputs|outputs)\b\s*:.*/g,
      );
      expect({ path, specifications }).toEqual({ path, specifications: null });
    }
  });

  const tritonjs = fileURLToPath(new URL("./main.js", import.meta.resolve("@tritonjs/cli")));
  /** The text that is left after the formatter has run. */
  const unformatted = (text: string) => text.replace(/[\s"',;]/g, "");

  it.each(["typed-command", "mount-next"])(
    "the types of %s are those that its script writes",
    async (name) => {
      const folder = join(repositoryRoot, "examples", name);
      const { scripts } = JSON.parse(textOf(`${name}/package.json`)) as { scripts: { types: string } };
      const options = scripts.types.replace(/^.* types /, "types ").split(" ");
      const written = options.filter((option, i) => option !== "--out" && options[i - 1] !== "--out");
      const { stdout } = await promisify(execFile)(process.execPath, [tritonjs, ...written], { cwd: folder });
      expect(unformatted(textOf(`${name}/models.d.ts`))).toBe(unformatted(stdout));
    },
  );
});
