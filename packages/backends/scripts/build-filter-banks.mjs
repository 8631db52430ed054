/*
 * Compiles src/media/filter-banks.c to src/media/filter-banks-module.ts. Debian: apt install clang lld.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const source = new URL("../src/media/filter-banks.c", import.meta.url);
const folder = mkdtempSync(join(tmpdir(), "filter-banks-"));
const file = join(folder, "filter-banks.wasm");
const target = ["--target=wasm32", "-msimd128", "-mbulk-memory", "-O3", "-nostdlib"];
const linked = ["--no-entry", "--strip-all", "--import-memory", "--export=__heap_base", "-z,stack-size=1024"];
execFileSync("clang", [...target, ...linked.map((flag) => `-Wl,${flag}`), "-o", file, fileURLToPath(source)]);
const text = readFileSync(file).toString("base64");
rmSync(folder, { recursive: true });
const lines = text.match(/.{1,100}/g).map((line) => `  "${line}",`);
writeFileSync(
  new URL("../src/media/filter-banks-module.ts", import.meta.url),
  `/** SHA-256 of filter-banks.c, of which scripts/build-filter-banks.mjs made this file. */
export const SOURCE_HASH = "${createHash("sha256").update(readFileSync(source)).digest("hex")}";

/** WebAssembly of filter-banks.c. */
export const FILTER_BANKS_MODULE: string = [
${lines.join("\n")}
].join("");
`,
);
