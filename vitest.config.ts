import { availableParallelism } from "node:os";
import { defineConfig, type TestProjectConfiguration } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.js";

/** The long layer, which `npm run test:all` runs too. */
const LONG = "**/*.long.test.ts";

/** Whether the command asks for the long layer, or names a file of it. A folder runs its short tests alone. */
const asksForLong = process.argv.some((argument) => /^(--project=)?long$|\.long\b/.test(argument));

/** Files that replace modules, change the process or look at its memory and threads: a process for each. */
const ALONE = [
  "packages/core/test/behaviours/{instance-updates,released-memory}.test.ts",
  "packages/core/test/observe/log/log-file.test.ts",
  "packages/repository/test/layout/model-times.faults.test.ts",
  "packages/protocol/test/tensor/bytes-array.test.ts",
  "packages/cli/test/serve/process-memory.test.ts",
  "packages/backends/test/{threads,media/fbank-backend,trees/bound-trees}.test.ts",
  "test/examples/next-routes.test.ts",
];

/** These start browsers, installs and programs, which take a busy machine minutes. */
const long: TestProjectConfiguration = {
  extends: true,
  test: {
    name: "long",
    include: [LONG],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 150_000 } },
  },
};

/**
 * Files that share a process for each core, which imports what they have in common once: a third of the processor time.
 * They undo what they change.
 */
const shared = (name: string, files: string): TestProjectConfiguration => ({
  extends: true,
  test: { name, include: [files], exclude: [...ALONE, LONG, "**/node_modules/**"], isolate: false },
});

export default defineConfig({
  test: {
    // For tests that use ONNX Runtime by itself. Those of this library's own rule start programs without the variable.
    env: { ORT_DISABLE_TELEMETRY: "1" },
    globalSetup: ["test/support/bundle-packages.ts", "test/support/temporary-folder.ts"],
    // Node imports the bundles by itself, which takes half of the time.
    server: { deps: { external: [/\/packages\/[^/]+\/dist\//] } },
    // Threads would share their environment, working directory and signals.
    pool: "forks",
    // They wait for processes, sockets, installs and browsers: with a worker for each core, a third of the time is idle.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    sequence: { sequencer: LongestFirst },
    // Limits end a test that hangs. A busy machine needs far less, so load alone fails no test. They stay below the
    // server's keep-alive timeout (72 s), so a `close` that waits for an idle connection still fails its test.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 50_000 } },
    reporters: ["default", "./test/support/summary-reporter.ts"],
    projects: [
      shared("units", "packages/*/test/**/*.test.ts"),
      shared("behaviours", "test/**/*.test.ts"),
      { extends: true, test: { name: "alone", include: ALONE } },
      ...(asksForLong ? [long] : []),
    ],
  },
});
