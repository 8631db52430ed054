import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { exampleFolder, promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

describe("the serving example", () => {
  it.each(["decorators", "tree-ensemble", "response-cache", "rate-limiter", "priorities"])(
    "%s runs to its end and prints what its README promises",
    async (name) => {
      const module = join(exampleFolder(name), "dist", "main.js");
      const { code, stdout, stderr } = await Program.node(module, [], repositoryRoot).ended;
      expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toMatch(promisedOutput(name));
    },
  );
});
