import { fork } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Finding } from "./finding.js";
import type { FuzzMessage, FuzzTask } from "./fuzz-process.js";
import type { FuzzReport } from "./fuzzer.js";
import { readRunningInputs } from "./running-inputs.js";

/** Settings of a supervised run. */
export interface SupervisedRun extends Omit<FuzzTask, "file" | "repeat"> {
  /** Program of the process that runs the target. */
  readonly program: string;
  /** Milliseconds without a finished batch after which the process counts as hanging. */
  readonly hangMs: number;
  /** Most processes that are started after one hung or crashed; 10 unless given. */
  readonly restarts?: number;
  readonly onFinding: (finding: Finding) => void;
  readonly onProgress: (report: FuzzReport) => void;
}

/** How a process ended. */
type End = { readonly report: FuzzReport | undefined } | { readonly fault: string; readonly ran: number };

/**
 * Runs a target in a process of its own. When the process hangs or crashes, finds the input that does it, and goes on
 * with another seed.
 *
 * @returns the reports of all processes that ended by themselves
 */
export async function supervise(run: SupervisedRun): Promise<FuzzReport[]> {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-fuzz-"));
  try {
    const reports: FuzzReport[] = [];
    let done = 0;
    for (let attempt = 0; attempt <= (run.restarts ?? 10) && done < run.runs; attempt++) {
      const file = join(folder, `inputs-${attempt}`);
      let last: FuzzReport | undefined;
      const task = { ...run, file, seed: run.seed + attempt, runs: run.runs - done };
      const end = await runProcess(run, task, (report) => {
        last = report;
        run.onProgress(report);
      });
      if ("report" in end) {
        if (end.report !== undefined) reports.push(end.report);
        return reports;
      }
      if (last !== undefined) reports.push(last);
      done += last?.runs ?? 0;
      if (!existsSync(file)) throw new Error(`the target ${run.target} does not start: ${end.fault}`);
      run.onFinding(await findInput(run, file, end.fault));
    }
    return reports;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs the inputs of a process that ended one by one. */
async function findInput(run: SupervisedRun, file: string, fault: string): Promise<Finding> {
  const inputs = readRunningInputs(file);
  const end = await runProcess(run, { ...run, file, repeat: true }, () => {});
  if ("fault" in end) return { input: inputs[end.ran] ?? new Uint8Array(), text: end.fault };
  return {
    input: Buffer.concat(inputs),
    text: `${fault} (by one of ${inputs.length} inputs, together only)`,
  };
}

function runProcess(
  run: SupervisedRun,
  { target, file, seed, runs, timeMs, coverage, repeat }: FuzzTask,
  onProgress: (report: FuzzReport) => void,
): Promise<End> {
  return new Promise((resolve) => {
    const task: FuzzTask = { target, file, seed, runs, timeMs, coverage, repeat };
    const child = fork(run.program, [JSON.stringify(task)], { execArgv: ["--expose-gc"] });
    let fault: string | undefined;
    let report: FuzzReport | undefined;
    let ended = false;
    let ran = 0;
    const hang = (): void => {
      fault = `hangs: no answer within ${run.hangMs} ms`;
      child.kill("SIGKILL");
    };
    let timer = setTimeout(hang, run.hangMs);
    child.on("message", (message: FuzzMessage) => {
      clearTimeout(timer);
      timer = setTimeout(hang, run.hangMs);
      if (message.kind === "ran") ran = message.index + 1;
      else if (message.kind === "progress") onProgress(message.report);
      else if (message.kind === "finding")
        run.onFinding({ text: message.text, input: Buffer.from(message.input, "base64") });
      else if (message.kind === "end") {
        ended = true;
        report = message.report;
      }
    });
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      if (ended && fault === undefined && code === 0) resolve({ report });
      else resolve({ fault: fault ?? `the process ends with ${signal ?? `exit code ${code}`}`, ran });
    });
  });
}
