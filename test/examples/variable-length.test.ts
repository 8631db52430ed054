import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

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
