import { defineConfig } from "vitest/config";

/** The long layer, which `npm run test:all` runs too. */
const LONG = "**/*.long.test.ts";

/**
 * Folders whose tests start no workers and look neither into memory nor at the state of modules. Files of them share a
 * process, which imports what they have in common once: a third of the processor time.
 */
const UNITS = [
  "packages/core/test/{batch,cache,config,model,request,scheduler,service,system}/**/*.test.ts",
  "packages/core/test/{tensor,time-travel,triton}/**/*.test.ts",
  "packages/{client/test,grpc/test/handlers,llm/test/openai,cli/test/commands}/**/*.test.ts",
];

export default defineConfig({
  test: {
    // For tests that use ONNX Runtime by itself. Those of this library's own rule start programs without the variable.
    env: { ORT_DISABLE_TELEMETRY: "1" },
    globalSetup: ["test/support/bundle-packages.ts", "test/support/temporary-folder.ts"],
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
        test: { name: "units", include: UNITS, exclude: [LONG, "**/node_modules/**"], isolate: false },
      },
      {
        extends: true,
        test: {
          name: "behaviours",
          include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
          exclude: [...UNITS, LONG, "**/node_modules/**"],
        },
      },
      // These start browsers, installs and programs, which take a busy machine minutes.
      {
        extends: true,
        test: {
          name: "long",
          include: [LONG],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          expect: { poll: { timeout: 150_000 } },
        },
      },
    ],
  },
});
