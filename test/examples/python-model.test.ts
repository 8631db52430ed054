import { join } from "node:path";
import { expect, it } from "vitest";
import { promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { hasPython, withoutPython } from "../support/python.js";
import { repositoryRoot } from "../support/repository.js";

it.skipIf(!hasPython)(`the Python model example serves its model${withoutPython}`, async () => {
  const main = join(repositoryRoot, "examples", "python-model", "dist", "main.js");
  const { code, stdout } = await Program.node(main, [], repositoryRoot).ended;
  expect(code).toBe(0);
  expect(stdout).toMatch(promisedOutput("python-model"));
});
