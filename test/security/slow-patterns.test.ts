import { describe, expect, it } from "vitest";
import { useServer } from "./support/open-server.js";

const quiet = { error() {}, warn() {}, info() {}, debug() {} };
const server = useServer(() => ({
  triton: { modelRepository: ".", modelControlMode: "explicit", logger: quiet },
}));

/** Long enough that a pattern of quadratic time would take minutes. */
const LONG = 1_000_000;

describe("a text that makes regular expressions slow", () => {
  it.each([
    ["a file of spaces", { config: "{}", "file:1/a": `${" ".repeat(LONG)}!` }, "expected base64"],
    [
      "a configuration of digits",
      { config: `{"max_batch_size":${"1".repeat(LONG)}x}` },
      "failed to poll from model repository",
    ],
    ["a configuration of spaces", { config: `{${" ".repeat(LONG)}` }, "failed to poll from model repository"],
  ])("is refused in linear time: %s", async (_what, parameters, text) => {
    const answer = await fetch(`http://localhost:${server.httpPort}/v2/repository/models/docs/load`, {
      method: "POST",
      body: JSON.stringify({ parameters }),
    });
    expect(await answer.text()).toContain(text);
    await server.serves();
  });

  it("in a header is answered in linear time", async () => {
    const spaces = " ".repeat(8000);
    const hostile: Record<string, string>[] = [
      { authorization: `Bearer ${spaces}x y` },
      { "accept-encoding": `gzip${";q=".repeat(2000)}` },
      { "inference-header-content-length": `${"1".repeat(8000)}x` },
    ];
    const url = `http://localhost:${server.httpPort}/v2/models/echo/infer`;
    for (const headers of hostile) {
      const answer = await fetch(url, { method: "POST", headers, body: "{}" });
      await answer.text();
      expect(answer.ok).toBe(false);
    }
    await server.serves();
  });
});
