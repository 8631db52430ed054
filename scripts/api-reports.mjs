/*
 * `npm run api:report [-- package ...]`: writes `api-report.md` of each package, the list of all its exports with
 * their types. The reports are in the repository, so that a review shows each change of the public API. Entries named
 * `internal` are for our own packages and are left out. With `--check`, the script writes nothing and fails when a
 * report is out of date. The declarations in `dist` must be built first.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CompilerState, Extractor, ExtractorConfig } from "@microsoft/api-extractor";
import { root } from "./run.mjs";

const compilerOptions = {
  module: "nodenext",
  moduleResolution: "nodenext",
  target: "es2022",
  lib: ["es2023", "esnext.disposable"],
  types: ["node"],
  strict: true,
  skipLibCheck: true,
};

function configOf(folder, declarations, scratch) {
  return ExtractorConfig.prepare({
    configObject: {
      projectFolder: folder,
      mainEntryPointFilePath: join(folder, declarations),
      compiler: { overrideTsconfig: { compilerOptions } },
      apiReport: {
        enabled: true,
        reportFileName: "entry.api.md",
        reportFolder: scratch,
        reportTempFolder: join(scratch, "temp"),
      },
      newlineKind: "lf",
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
    },
    packageJsonFullPath: join(folder, "package.json"),
  });
}

/** Reports the exports of one entry point as TypeScript. */
function reportEntry(config, compilerState, scratch) {
  Extractor.invoke(config, {
    localBuild: true,
    compilerState,
    // The reports only show the exports. TypeScript and biome check how they are written.
    messageCallback: (message) => {
      message.handled = true;
    },
  });
  const [, code] = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(scratch, "entry.api.md"), "utf8"));
  return code
    .replace(/^(import .*\n)+/m, "")
    .replace(/^ *\/\/ (@|\((No @packageDocumentation|undocumented)).*\n/gm, "")
    .replace(/\n\s*\n+/g, "\n\n")
    .trim();
}

/** Whether an entry is only for packages of this repository. */
const isInternal = (entry) => /^\.\/internal(\/|$)/.test(entry);

function reportPackage(folder) {
  const { name, exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const scratch = mkdtempSync(join(tmpdir(), "api-report-"));
  try {
    const entries = Object.entries(exports)
      .filter(([entry, target]) => target.types?.endsWith(".d.ts") && !isInternal(entry))
      .map(([entry, { types }]) => [entry, configOf(folder, types, scratch)]);
    const [[, first], ...others] = entries;
    const additionalEntryPoints = others.map(([, config]) => config.mainEntryPointFilePath);
    const compilerState = CompilerState.create(first, { additionalEntryPoints });
    const sections = entries.map(([entry, config]) => {
      const code = reportEntry(config, compilerState, scratch);
      return `## \`${name}${entry.slice(1)}\`\n\n\`\`\`ts\n${code}\n\`\`\`\n`;
    });
    return `# What ${name} exports\n\nWritten by \`npm run api:report\`.\n\n${sections.join("\n")}`;
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

const names = process.argv.slice(2).filter((argument) => argument !== "--check");
const isCheck = process.argv.includes("--check");
const packages = names.length > 0 ? names : readdirSync(join(root, "packages"));
const stale = [];
for (const name of packages) {
  const folder = join(root, "packages", name);
  const file = join(folder, "api-report.md");
  const report = reportPackage(folder);
  if (existsSync(file) && readFileSync(file, "utf8") === report) continue;
  if (isCheck) stale.push(name);
  else writeFileSync(file, report);
}
if (stale.length > 0) {
  console.error(
    `the API reports of ${stale.join(", ")} are out of date: run \`npm run api:report\` and review the change`,
  );
  process.exit(1);
}
