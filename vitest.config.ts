import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["packages/*/test/**/*.test.ts", "test/**/*.test.ts"],
    // Worker threads of ONNX Runtime and real sockets want a process of their own for each file.
    pool: "forks",
    // Much of the time is spent on waiting for processes and sockets.
    maxWorkers: "100%",
    // Limits end a test that hangs. A busy machine needs far less, so load alone fails no test. They stay below the
    // server's keep-alive timeout (72 s), so a `close` that waits for an idle connection still fails its test.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 50_000 } },
  },
});
