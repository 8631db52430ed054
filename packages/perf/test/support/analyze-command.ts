import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { analyzeWith } from "../../src/analyze/analyze.js";
import type { AnalyzeMachine } from "../../src/analyze/candidate.js";

/** What the command wrote, and how it ended. */
export interface AnalyzeEnd {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
}

/** A folder that is removed after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tritonjs-analyze-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs the command on a machine. `stop` resolves when the user interrupts it. */
export async function runAnalyze(
  args: readonly string[],
  machine: AnalyzeMachine,
  { stop = new Promise<unknown>(() => {}), now = (): number => 0 } = {},
): Promise<AnalyzeEnd> {
  let output = "";
  let errors = "";
  const code = await analyzeWith(
    ["--model-repository", "models", ...args],
    {
      write: (text) => {
        output += text;
      },
      writeError: (text) => {
        errors += text;
      },
      stopRequested: () => stop,
    },
    async () => machine,
    now,
  );
  return { code, output, errors };
}
