import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { exampleFolder } from "../support/example-readme.js";
import { expectPromisedOutput } from "../support/example-run.js";
import { fakeNvidiaSmi } from "../support/fake-nvidia-smi.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const hasPrometheus = spawnSync("prometheus", ["--version"]).error === undefined;
const withoutPrometheus = hasPrometheus ? "" : " (skipped: there is no prometheus)";

it.skipIf(!hasPrometheus)(
  `the monitoring example shows what the rules and the dashboard see${withoutPrometheus}`,
  async () => {
    await using _ = await fakeNvidiaSmi('echo "No devices were found"');
    await expectPromisedOutput("monitoring");
  },
);

it("the monitoring example reads a trace id from the metrics page, and says when Prometheus is missing", async () => {
  const main = join(exampleFolder("monitoring"), "dist", "main.js");
  const program = new Program(process.execPath, [main], { cwd: repositoryRoot, env: { PATH: "" } });
  const { code, stdout, stderr } = await program.ended;
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  const [exemplar, missing, ...rest] = stdout.split("\n");
  expect(exemplar).toMatch(
    /^tritonjs_request_duration_seconds_bucket\{model="double",version="1",le="[\d.]+"\} 1 # \{trace_id="0af7651916cd43dd8448eb211c80319c"\} [\d.e-]+ [\d.]+$/,
  );
  expect(missing).toMatch(/^prometheus is not installed: /);
  expect(rest).toEqual([""]);
});
