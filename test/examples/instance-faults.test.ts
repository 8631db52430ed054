import { join } from "node:path";
import { expect, it } from "vitest";
import { promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

it("the instances example continues after a crash and after a loop", async () => {
  const module = join(repositoryRoot, "examples", "instances", "dist", "main.js");
  const { code, stdout, stderr } = await Program.node(module, [], repositoryRoot).ended;
  expect(code).toBe(0);
  const restarts = [
    ...stderr.matchAll(/TritonError: instance '(\w+)' of model '\w+' version 1 restarts in/g),
  ];
  expect(restarts.map(([, instance]) => instance)).toEqual(["roots_0_0", "roots_0_1"]);
  expect(stdout).toMatch(promisedOutput("instances"));
});
