import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { errorReasons } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../support/repository.js";

const sources = readdirSync(join(repositoryRoot, "packages"))
  .map((name) => join(repositoryRoot, "packages", name, "src"))
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.endsWith("error-reasons.ts"))
      .map((file) => ({
        file,
        text: readFileSync(join(folder, file), "utf8").replace(/^\s*(\*|\/\/).*$/gm, ""),
      })),
  );

describe("the page of errors", () => {
  it("holds the table that the library has", async () => {
    const script = join(repositoryRoot, "scripts/write-errors-page.mjs");
    const { stdout } = await promisify(execFile)(process.execPath, [script, "--print"]);
    expect(await readFile(join(repositoryRoot, "docs/errors.md"), "utf8")).toBe(stdout);
  });

  it("gives every code an HTTP and a gRPC status", async () => {
    const page = await readFile(join(repositoryRoot, "docs/errors.md"), "utf8");
    expect(page).not.toContain("undefined");
  });
});

describe("the table of reasons", () => {
  it("has a general reason for every code, which is named like the code", () => {
    const codes = new Set(Object.values(errorReasons).map(({ code }) => code));
    expect([...codes].filter((code) => errorReasons[code].code !== code)).toEqual([]);
  });

  it("has no reason that no source uses", () => {
    const used = new Set(
      sources.flatMap(({ text }) => [...text.matchAll(/"([A-Z_]+)"/g)].map(([, word]) => word)),
    );
    expect(Object.keys(errorReasons).filter((reason) => !used.has(reason))).toEqual([]);
  });
});

describe("errors in the sources", () => {
  it("have a reason of their own wherever they are UNAVAILABLE", () => {
    const general = sources.flatMap(({ file, text }) =>
      callsOf(text)
        .filter((call) => /^\s*"UNAVAILABLE"/.test(call) && !/\breason\b/.test(call))
        .map((call) => `${file}: ${call.trim()}`),
    );
    expect(general).toEqual([]);
  });
});

/** The arguments of each place that makes an error. */
function callsOf(text: string): string[] {
  return [...text.matchAll(/(?:new TritonError|errorWithoutStack)\(/g)].map(({ index, 0: { length } }) => {
    let depth = 1;
    let end = index + length;
    for (; depth > 0 && end < text.length; end++) {
      if (text[end] === "(") depth++;
      if (text[end] === ")") depth--;
    }
    return text.slice(index + length, end - 1);
  });
}
