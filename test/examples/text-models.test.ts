import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { exampleFolder, promisedOutput } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

/** Runs an example to its end and compares its output with its README. */
async function run(example: string, ...options: string[]): Promise<void> {
  const program = Program.node(join(exampleFolder(example), "dist", "main.js"), options, repositoryRoot);
  onTestFinished(() => program.signal("SIGKILL"));
  const { code, stdout, stderr } = await program.ended;
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(promisedOutput(example));
}

describe("the examples of text models", () => {
  it("retrieval finds articles by their meaning", () => run("retrieval"));

  it("remote-openai streams from another server, cancels there, and passes its errors on", () =>
    run("remote-openai"));

  it("chat-page answers the question of its page", () => run("chat-page", "--once"));
});
