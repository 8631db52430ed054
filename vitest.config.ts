import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    globalSetup: "test/support/bundle-packages.ts",
    include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
    // Worker threads of ONNX Runtime and real sockets want a process of their own for each file.
    pool: "forks",
    // Much of the time is spent on waiting for processes and sockets.
    maxWorkers: "100%",
    testTimeout: 30_000,
  },
});
