import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";
import type { Block } from "./markdown.js";

/** The folder is inside the repository, so that `@tritonjs/*` resolves as in a project that installed it. */
const folder = join(repositoryRoot, "node_modules", ".cache", `doc-snippets-${process.pid}`);

/**
 * The block as it runs: on free ports, because Triton's own may be taken on this machine. The rest of it is
 * unchanged.
 */
export function onFreePorts(code: string): string {
  return code.replaceAll("new Triton()", "new Triton({ httpPort: 0, grpcPort: 0, metricsPort: 0 })");
}

/** Line that a program of several blocks prints before each of them. */
export const BLOCK_BEGINS = "--- block ---";

/** Imports modules in turn. Importing the library takes longer than most of them, and is done once. */
const IN_TURN = `for (const module of process.argv.slice(2)) {
  console.log(${JSON.stringify(BLOCK_BEGINS)});
  await import(module);
}`;

const IN_TURN_FILE = "in-turn.mjs";

/** Starts compiled blocks, one after the other. What they leave in their temporary folder goes with the compiled files. */
export function runSnippets(modules: readonly string[]): Program {
  const temporary = join(folder, "temporary");
  mkdirSync(temporary, { recursive: true });
  const env = { TMPDIR: temporary, TEMP: temporary, TMP: temporary };
  const urls = modules.map((module) => pathToFileURL(module).href);
  return new Program(process.execPath, [join(folder, IN_TURN_FILE), ...urls], { cwd: repositoryRoot, env });
}

/** Compiles blocks with type checks and resolves with the modules to run, in order. */
export async function compileSnippets(snippets: readonly Block[]): Promise<string[]> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, IN_TURN_FILE), IN_TURN);
  const files = snippets.map(({ where }) => `${where.replace(/[^\w]+/g, "-")}.mts`);
  for (const [i, { code }] of snippets.entries()) writeFileSync(join(folder, files[i]!), onFreePorts(code));
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({
      extends: "../../../tsconfig.base.json",
      // `strict`, as most programs have it. Code of the README also compiles where an index may be undefined.
      compilerOptions: {
        noUncheckedIndexedAccess: snippets.every(({ where }) => where.startsWith("README.md")),
        composite: false,
        declaration: false,
        declarationMap: false,
        sourceMap: false,
      },
      files,
    }),
  );
  const tsc = join(repositoryRoot, "node_modules", "typescript", "bin", "tsc");
  const { code, stdout } = await Program.node(tsc, ["-p", folder], repositoryRoot).ended;
  if (code !== 0) throw new Error(`the code in the documents does not compile:\n${stdout}`);
  return files.map((file) => join(folder, file.replace(/\.mts$/, ".mjs")));
}

/** Removes the compiled files. */
export function removeSnippets(): void {
  rmSync(folder, { recursive: true, force: true });
}
