import { join } from "node:path";
import { expect, it } from "vitest";
import { promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

it("the instances example continues after a crash and after a loop", async () => {
  const module = join(repositoryRoot, "examples", "instances", "dist", "main.js");
  const { code, stdout, stderr } = await Program.node(module, [], repositoryRoot).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(promisedOutput("instances"));
});
