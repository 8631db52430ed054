import type { Reporter, TestModule } from "vitest/node";

/** The reason for skipping in the name of a suite or test. */
const REASON = /\(skipped: ([^)]*)\)/;

/** Says at the end of a run what this machine lacks, and which time each project took. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = new Map<string, number>();
    const projects = new Map<string, number>();
    for (const module of modules) {
      for (const test of module.children.allTests("skipped")) {
        const reason = REASON.exec(test.fullName)?.[1] ?? "no reason given";
        skipped.set(reason, (skipped.get(reason) ?? 0) + 1);
      }
      const { duration, collectDuration, setupDuration, prepareDuration } = module.diagnostic();
      const ms = duration + collectDuration + setupDuration + prepareDuration;
      projects.set(module.project.name, (projects.get(module.project.name) ?? 0) + ms);
    }
    if (skipped.size > 0) console.log("\nSkipped on this machine:");
    for (const [reason, count] of skipped)
      console.log(`  ${reason}: ${count} ${count === 1 ? "test" : "tests"}`);
    const times = [...projects].map(([name, ms]) => `${name} ${Math.round(ms / 1000)} s`);
    console.log(`\nSeconds of the workers, three for two cores: ${times.join(", ")}`);
  }
}
