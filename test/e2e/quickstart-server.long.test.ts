import { createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { curlLines, runCurlLine, startQuickstart } from "./support/quickstart.js";

/** Windows ends a process at once, whichever signal it gets. */
const hasSignals = process.platform !== "win32";

describe("the quick start", () => {
  it("serves its curl lines", async () => {
    const quickstart = startQuickstart();
    onTestFinished(() => quickstart.signal("SIGKILL"));
    const lines = curlLines(await quickstart.untilOutput("Serving."));
    expect(lines).toHaveLength(6);
    const [ready, metadata, linear, iris, statistics, metrics] = await Promise.all(lines.map(runCurlLine));
    expect(ready).toBe("");
    expect(JSON.parse(metadata!)).toMatchObject({ name: "iris", platform: "onnxruntime_onnx" });
    expect(JSON.parse(linear!)).toMatchObject({
      model_name: "linear",
      outputs: [{ name: "y", datatype: "FP32", shape: [1, 3], data: [2, 3, 5] }],
    });
    expect(JSON.parse(iris!)).toMatchObject({
      outputs: [
        { name: "probabilities", shape: [1, 3] },
        { name: "species", data: [0] },
      ],
    });
    expect(JSON.parse(statistics!)).toMatchObject({ model_stats: [{ name: "iris" }] });
    expect(metrics).toMatch(/^nv_inference_request_success\{model="iris",version="1"\} 15\d/m);
  });

  it.runIf(hasSignals).each(["SIGINT", "SIGTERM"] as const)("drains and exits 0 on %s", async (signal) => {
    const quickstart = startQuickstart();
    onTestFinished(() => quickstart.signal("SIGKILL"));
    await quickstart.untilOutput("Serving. Ctrl-C stops.");
    quickstart.signal(signal);
    const { code, stdout, stderr } = await quickstart.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.trimEnd()).toMatch(/Serving\. Ctrl-C stops\.\s+Draining\.$/);
  });

  it.each([
    ["http-port", "httpPort"],
    ["grpc-port", "grpcPort"],
    ["metrics-port", "metricsPort"],
  ] as const)(
    "exits 1 when the port for --%s is taken, and names the port and the option",
    async (flag, option) => {
      const port = await takePort();
      const { code, stdout, stderr } = await startQuickstart(["--once"], { [flag]: port }).ended;
      expect(code).toBe(1);
      expect(stdout).toBe("");
      expect(stderr).toContain(`port ${port} is already in use: choose another with the option ${option}`);
      expect(stderr).toContain(`--${flag}`);
      expect(stderr).not.toMatch(/^\s+at /m);
    },
  );

  it.each([
    [["--nonsense"], "Unknown option '--nonsense'"],
    [["--http-port=many"], "--http-port takes a number from 0 to 65535, got 'many'"],
    [["--grpc-port=65536"], "--grpc-port takes a number from 0 to 65535, got '65536'"],
  ])("exits 1 with a plain message about %s", async (args, message) => {
    const { code, stderr } = await startQuickstart(["--once", ...args]).ended;
    expect(code).toBe(1);
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });
});

/** Listens on a free port of localhost until the end of the test. */
async function takePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
