import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { curlLines } from "../support/curl-line.js";
import { exampleFolder, promisedOutput, readExampleReadme } from "../support/example-readme.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

it("the observed application shows its model in its own log, metrics and traces", async () => {
  const module = join(exampleFolder("observed-app"), "dist", "main.js");
  const program = new Program(process.execPath, [module], { cwd: repositoryRoot, env: { PORT: "0" } });
  onTestFinished(() => program.signal("SIGKILL"));
  const [, port] = /127\.0\.0\.1:(\d+)/.exec(await program.untilOutput("listening at "))!;
  const lines = curlLines(readExampleReadme("observed-app"));
  expect(lines).toHaveLength(5);
  for (const { line, path, init, status, text } of lines) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, init);
    expect([line, answer.status, await answer.text()]).toEqual([line, status, expect.stringContaining(text)]);
  }
  const printed = await program.untilOutput("failed: ");
  expect(printed.replace(port!, "3000")).toMatch(promisedOutput("observed-app"));
  const [asks, failure] = printed.trim().split("\n").slice(-2);
  expect(JSON.parse(failure!).trace_id).toBe(JSON.parse(asks!).trace_id);
});
