import { openTarget } from "../targets/index.js";
import { Fuzzer, type FuzzReport } from "./fuzzer.js";
import { RunningInputs, readRunningInputs } from "./running-inputs.js";

/* The process that runs a target. Its parent ends it when it hangs. */

/** What the process does: a random run, or the inputs of a file one by one. */
export interface FuzzTask {
  readonly target: string;
  readonly file: string;
  readonly seed: number;
  readonly runs: number;
  readonly timeMs?: number;
  readonly coverage: boolean;
  /** Runs the inputs of `file` instead. */
  readonly repeat?: boolean;
}

/** What it tells its parent. */
export type FuzzMessage =
  | { readonly kind: "alive" }
  | { readonly kind: "ran"; readonly index: number }
  | { readonly kind: "progress"; readonly report: FuzzReport }
  | { readonly kind: "finding"; readonly text: string; readonly input: string }
  | { readonly kind: "end"; readonly report?: FuzzReport };

const send = (message: FuzzMessage): void => void process.send!(message);

// Most inputs end with an error, and deep stacks are what such an input costs most.
Error.stackTraceLimit = 4;
// Libraries warn of odd files.
console.warn = () => {};

async function main(task: FuzzTask): Promise<void> {
  const target = await openTarget(task.target);
  if (task.repeat) {
    for (const [index, input] of readRunningInputs(task.file).entries()) {
      try {
        await target.run(input);
      } catch {
        // Faults were reported by the process that ended.
      }
      send({ kind: "ran", index });
    }
    send({ kind: "end" });
  } else {
    const running = new RunningInputs(task.file);
    const fuzzer = new Fuzzer(target, {
      ...task,
      onBatch(inputs) {
        running.write(inputs);
        send({ kind: "alive" });
      },
      onFinding: ({ text, input }) =>
        send({ kind: "finding", text, input: Buffer.from(input).toString("base64") }),
      onProgress: (report) => send({ kind: "progress", report }),
    });
    const report = await fuzzer.run();
    running.close();
    send({ kind: "end", report });
  }
  await target.close?.();
  if (process.connected) process.disconnect();
}

await main(JSON.parse(process.argv[2]!) as FuzzTask);
