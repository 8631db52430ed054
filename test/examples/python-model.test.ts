import { join } from "node:path";
import { expect, it } from "vitest";
import { Program } from "../support/program.js";
import { hasPython, withoutPython } from "../support/python.js";
import { repositoryRoot } from "../support/repository.js";

it.skipIf(!hasPython)(`the Python model example serves its model${withoutPython}`, async () => {
  const main = join(repositoryRoot, "examples", "python-model", "dist", "main.js");
  const { code, stdout } = await Program.node(main, [], repositoryRoot).ended;
  expect({ code, lines: stdout.trimEnd().split("\n") }).toEqual({
    code: 0,
    lines: ["-1.225 0.000 1.225", "a row of equal numbers has no deviation"],
  });
});
