import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { repositoryWith } from "../recovery/served-repository.js";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

const MINUTES = 0.5;

/** The servers start, and everything that is left open is looked for, outside of this time. */
const TIMEOUT_MS = (MINUTES + 6) * 60_000;

const note = process.platform === "linux" ? "" : " (skipped: it reads Linux's /proc)";

it.skipIf(note !== "")(
  `half a minute of load and faults ends every request as they must${note}`,
  {
    timeout: TIMEOUT_MS,
  },
  async () => {
    const report = join(await repositoryWith({}), "report.json");
    const args = [`--minutes=${MINUTES}`, `--report=${report}`, "--quiet"];
    const { stdout, stderr } = await Program.node(join(repositoryRoot, "chaos/run.mjs"), args, repositoryRoot)
      .ended;
    const { faults, requests, events } = JSON.parse(
      await readFile(report, "utf8").catch(() => {
        throw new Error(`the run has no report: ${stdout}${stderr}`);
      }),
    );
    expect(faults).toEqual([]);
    expect(Object.keys(requests).length).toBeGreaterThan(10);
    expect(Object.keys(events).length).toBeGreaterThan(5);
  },
);
