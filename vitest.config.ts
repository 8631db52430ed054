import { defineConfig } from "vitest/config";

/** The long layer, which `npm run test:all` runs too. */
const LONG = [
  // Replays of recordings.
  "test/golden/**/*.test.ts",
  "test/conformance/onnx-operators.test.ts",
  // Random and large loads.
  "test/simulation/*-load.test.ts",
  "packages/tools/test/analyze/search/*.exhaustive.test.ts",
  "test/stress/**/*.test.ts",
  "test/core/request-settlement.test.ts",
  "packages/grpc/test/handlers/stream-infer.back-pressure.test.ts",
  // Processes and threads that crash, hang or are killed.
  "test/core/instance-faults.test.ts",
  "test/core/worker-crashes.test.ts",
  "test/core/process-lifetime.test.ts",
  "test/core/python-models/python-{faults,process-lifetime}.test.ts",
  // A browser.
  "test/dashboard/browser.test.ts",
  // Servers of others.
  "packages/core/test/repository/cloud/cloud-source.google-and-azure.test.ts",
  "test/e2e/nest-routes.test.ts",
  "test/examples/mounted-servers.test.ts",
  "test/docs/getting-started.test.ts",
  // Runs the compiler.
  "test/types/forgotten-wrapper.test.ts",
  // Generates the codec again.
  "packages/grpc-messages/test/generated-codec-is-current.test.ts",
  // Reads the declarations of all packages.
  "test/package/api-reports.test.ts",
  // Installs the packages, with other package managers too, and bundles them.
  "test/package/installed-packages.test.ts",
  "test/package/package-managers.test.ts",
  "test/package/typescript-versions.test.ts",
  "test/package/bundlers.test.ts",
  // Commands against several servers, with TLS, streams of tokens and sequences.
  "packages/tools/test/perf/perf.targets.test.ts",
];

export default defineConfig({
  test: {
    globalSetup: "test/support/bundle-packages.ts",
    // Worker threads of ONNX Runtime and real sockets want a process of their own for each file.
    pool: "forks",
    // Much of the time is spent on waiting for processes and sockets.
    maxWorkers: "100%",
    // Limits end a test that hangs. A busy machine needs far less, so load alone fails no test. They stay below the
    // server's keep-alive timeout (72 s), so a `close` that waits for an idle connection still fails its test.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 50_000 } },
    reporters: ["default", "./test/support/skipped-reporter.ts"],
    projects: [
      {
        extends: true,
        test: {
          name: "behaviours",
          include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
          exclude: [...LONG, "**/node_modules/**"],
        },
      },
      { extends: true, test: { name: "long", include: [...LONG] } },
    ],
  },
});
