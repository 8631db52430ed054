import { join } from "node:path";
import { expect, it } from "vitest";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

it("the pictures of the documents are as their scripts draw them", async () => {
  const args = [join(repositoryRoot, "scripts", "draw-pictures.mjs"), "--check"];
  const { code, stderr } = await new Program(process.execPath, args, { cwd: repositoryRoot }).ended;
  expect(stderr).toBe("");
  expect(code).toBe(0);
});
