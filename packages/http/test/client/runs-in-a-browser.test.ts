import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

/** The parts of core that the client uses. */
const partsOfCore = ["client", "tensor"].map((part) =>
  fileURLToPath(new URL(`../../../core/src/${part}/index.ts`, import.meta.url)),
);
const entry = fileURLToPath(new URL("../../src/client/index.ts", import.meta.url));

/** Files reachable from a file through runtime imports, and the packages that they import. */
function reachable(file: string, files = new Map<string, string>(), packages = new Set<string>()) {
  if (files.has(file)) return { files, packages };
  const code = readFileSync(file, "utf8").replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  files.set(file, code);
  const imports = code.matchAll(
    /\b(import|export)\s+(type\s)?[^;]*?\bfrom\s+"([^"]+)"|\bimport\(?\s*"([^"]+)"/g,
  );
  for (const [, , onlyTypes, from, bare] of imports) {
    const specifier = from ?? bare!;
    if (onlyTypes) continue;
    if (!specifier.startsWith(".")) packages.add(specifier);
    else reachable(join(dirname(file), specifier.replace(/\.js$/, ".ts")), files, packages);
  }
  return { files, packages };
}

const client = reachable(entry);
const { files } = client;
const packages = new Set<string>();
for (const part of partsOfCore) reachable(part, files, packages);

it("the client imports no Node.js module", () => {
  expect(files.size).toBeGreaterThan(20);
  expect([...client.packages]).toEqual(["@tritonjs/core/client", "@tritonjs/core/tensor"]);
  expect([...packages]).toEqual(["ndarray"]);
});

it("the client uses no Node.js global", () => {
  const named = [...files].filter(([, code]) =>
    /\b(Buffer|process|global|require|__dirname|__filename|setImmediate)\b\s*[.([]/.test(code),
  );
  expect(named.map(([file]) => file)).toEqual([]);
});
