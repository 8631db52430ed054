import type { Reporter, TestModule } from "vitest/node";

/** The reason for skipping in the name of a suite or test. */
const REASON = /\(skipped: ([^)]*)\)/;

/** Lists at the end of a run what this machine lacks, with the number of tests skipped for that reason. */
export default class SkippedReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = new Map<string, number>();
    for (const module of modules) {
      for (const test of module.children.allTests("skipped")) {
        const reason = REASON.exec(test.fullName)?.[1] ?? "no reason given";
        skipped.set(reason, (skipped.get(reason) ?? 0) + 1);
      }
    }
    if (skipped.size === 0) return;
    console.log("\nSkipped on this machine:");
    for (const [reason, count] of skipped)
      console.log(`  ${reason}: ${count} ${count === 1 ? "test" : "tests"}`);
  }
}
