import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import { testSnippets } from "./snippet-runs.js";

testSnippets("the code in the guides", (path) => !path.startsWith("README.md"));

describe("the pictures", () => {
  it("the pictures of the documents are as their scripts draw them", async () => {
    const args = [join(repositoryRoot, "scripts", "draw-pictures.mjs"), "--check"];
    const { code, stderr } = await new Program(process.execPath, args, { cwd: repositoryRoot }).ended;
    expect(stderr).toBe("");
    expect(code).toBe(0);
  });
});
