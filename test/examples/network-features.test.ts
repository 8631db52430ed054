import { describe, it } from "vitest";
import { expectPromisedOutput } from "../support/example-run.js";

describe("the example of a server", () => {
  it.each([
    "grpc-streams",
    "access-control",
    "custom-metrics",
    "remote-models",
    "cloud-endpoints",
    "request-limits",
    "warm-up-and-drain",
    "load-and-replay",
    "command-line",
    "openai-endpoints",
    "tool-calls",
    "client-calls",
    "classification",
    "cross-origin",
  ])("%s runs to its end and prints what its README promises", (name) => expectPromisedOutput(name));

  it("dashboard runs to its end and prints what its README promises", () =>
    expectPromisedOutput("dashboard", "--once"));

  it.skipIf(process.platform === "win32")(
    "shared-memory runs to its end and prints what its README promises (Linux and macOS)",
    () => expectPromisedOutput("shared-memory"),
  );
});
