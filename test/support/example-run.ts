import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { exampleFolder, promisedOutput } from "./example-readme.js";
import { Program } from "./program.js";
import { repositoryRoot } from "./repository.js";

/** Runs an example to its end and compares its output with its README. */
export async function expectPromisedOutput(name: string, ...args: string[]): Promise<void> {
  const program = Program.node(join(exampleFolder(name), "dist", "main.js"), args, repositoryRoot);
  onTestFinished(() => program.signal("SIGKILL"));
  const { code, stdout, stderr } = await program.ended;
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(promisedOutput(name));
}
