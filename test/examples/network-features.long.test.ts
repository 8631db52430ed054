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
    "tuning",
    "smaller-model",
    "command-line",
    "openai-endpoints",
    "tool-calls",
    "agents",
    "client-calls",
    "typed-command",
    "classification",
    "cross-origin",
    "cloud-repository",
    "grpc-reflection",
  ])("%s runs to its end and prints what its README promises", (name) => expectPromisedOutput(name));

  it.each(["dashboard", "browser-and-edge"])("%s runs once and prints what its README promises", (name) =>
    expectPromisedOutput(name, "--once"),
  );

  it.skipIf(process.platform === "win32").each(["shared-memory", "deployment"])(
    "%s runs to its end and prints what its README promises (Linux and macOS)",
    (name) => expectPromisedOutput(name),
  );
});
