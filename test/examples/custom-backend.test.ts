import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { expect, it, onTestFinished } from "vitest";
import { forest } from "../../examples/custom-backend/tree-backend/index.js";
import { promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const folder = join(repositoryRoot, "examples", "custom-backend");

it("the custom backend example serves its models", async () => {
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
  await using triton = new Triton({ modelRepository: models, backends: { forest }, logger });
  await triton.ready().catch(() => {});
  expect((await triton.service.repositoryIndex(false))[0]!.reason).toMatch(
    /cannot use forest '.*trees.json': a tree names a feature or a class that does not exist/,
  );
});
