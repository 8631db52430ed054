import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

/** The files whose functions a request enters on the server's main thread, in their order. */
async function wayOf(program: string): Promise<string[]> {
  const hooks = new URL("run-sources.mjs", import.meta.url).href;
  const path = fileURLToPath(new URL(program, import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ["--import", hooks, path]);
  return (JSON.parse(stdout) as { main: string[] }).main;
}

/** Each file with the number of function entries. */
function filesOf(way: readonly string[]): string[] {
  const files = [...new Set(way)].sort();
  return files.map((file) => `${file} ${way.filter((one) => one === file).length}`);
}

describe("the files that one needs to read to follow", () => {
  it("an HTTP request with binary tensors to a worker thread are at most 40", async () => {
    const files = filesOf(await wayOf("http-request.mjs"));
    expect(files.length, files.join("\n")).toBeGreaterThan(10);
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(40);
  });

  it("one more token of a streamed chat are at most 16", async () => {
    const files = filesOf(await wayOf("chat-token.mjs"));
    expect(files.length, files.join("\n")).toBeGreaterThan(5);
    expect(files.length, files.join("\n")).toBeLessThanOrEqual(16);
  });
});
