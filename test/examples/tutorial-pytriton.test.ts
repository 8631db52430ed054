import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

it.each([
  ["linear", /^Linear on KIND_(?:CPU|GPU) at (http:\S+)\n/],
  ["my-model", /^MyModel at (http:\S+)\n/],
])("the server and the client of PyTriton's tutorial %s print what it shows", async (name, started) => {
  const tutorial = join(repositoryRoot, "examples/tutorials", name);
  const server = Program.node(join(tutorial, "server.mjs"), ["--port=0"], repositoryRoot);
  onTestFinished(() => server.signal("SIGKILL"));
  const [, url] = started.exec(await server.untilOutput("\n"))!;
  const { code, stdout, stderr } = await Program.node(
    join(tutorial, "client.mjs"),
    [`--url=${url}`],
    repositoryRoot,
  ).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const [, expected] = /^```text\n(.*?)^```$/ms.exec(await readFile(join(tutorial, "README.md"), "utf8"))!;
  expect(stdout).toBe(expected);
  server.signal("SIGTERM");
  expect((await server.ended).code).toBe(0);
});
