import { join } from "node:path";
import { expect, it } from "vitest";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

it("the instances example continues after a crash and after a loop", async () => {
  const module = join(repositoryRoot, "examples", "instances", "dist", "main.js");
  const { code, stdout, stderr } = await Program.node(module, [], repositoryRoot).ended;
  expect({ code, stderr, lines: stdout.trimEnd().split("\n") }).toEqual({
    code: 0,
    stderr: "",
    lines: [
      "sqrt(16) = 4",
      expect.stringMatching(
        /^sqrt\(-1\): instance 'roots_0_\d' of model 'roots' crashed: was ended by SIGSEGV$/,
      ),
      "sqrt(25) = 5",
      expect.stringMatching(
        /^sqrt\(Infinity\): instance 'roots_0_\d' of model 'roots' was ended: its batch ran for more than 500 ms$/,
      ),
      "sqrt(36) = 6",
      "sqrt(49) = 7",
      "instances: 1",
    ],
  });
});
