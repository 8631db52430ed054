import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const tutorial = join(repositoryRoot, "examples/tutorials/online-learning");

it("a model learns over HTTP while clients ask it, and no request is lost", async () => {
  const server = Program.node(join(tutorial, "server.mjs"), ["--port=0"], repositoryRoot);
  onTestFinished(() => server.signal("SIGKILL"));
  const [, url] = /at (http:\S+)\n/.exec(await server.untilOutput("\n"))!;
  const client = Program.node(join(tutorial, "client.mjs"), [`--url=${url}`, "--batches=60"], repositoryRoot);
  onTestFinished(() => client.signal("SIGKILL"));
  const { code, stdout, stderr } = await client.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const [before, after] = /accuracy ([\d.]+) before, ([\d.]+) after/.exec(stdout)!.slice(1).map(Number);
  expect(before).toBeLessThan(0.3);
  expect(after).toBeGreaterThan(0.8);
  const [answered, sent, versions] = /(\d+) of (\d+) requests .* by (\d+) versions/
    .exec(stdout)!
    .slice(1)
    .map(Number);
  expect(answered).toBe(sent);
  expect(answered).toBeGreaterThan(40);
  expect(versions).toBeGreaterThan(20);
  server.signal("SIGTERM");
  expect((await server.ended).code).toBe(0);
}, 240_000);
