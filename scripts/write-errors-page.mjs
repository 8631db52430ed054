/*
 * `node scripts/write-errors-page.mjs`: writes the table of reasons into docs/errors.md, from the table of
 * `@tritonjs/protocol` and the statuses of both frontends. With --print it writes the page to standard output instead.
 * Build first.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errorReasons } from "../packages/protocol/dist/index.js";
import { root } from "./run.mjs";

const httpStatuses = statusesOf("http", /^ {2}([A-Z_]+): (\d+),$/gm);
const grpcStatuses = statusesOf("grpc", /^ {2}([A-Z_]+): STATUS\.([A-Z_]+),$/gm);

function statusesOf(frontend, line) {
  const source = readFileSync(join(root, `packages/${frontend}/src/status-from-code.ts`), "utf8");
  return new Map([...source.matchAll(line)].map(([, code, status]) => [code, status]));
}

const codes = [...new Set(Object.values(errorReasons).map(({ code }) => code))];
const statusTable = [
  "| code | HTTP | gRPC |",
  "|---|---|---|",
  ...codes.map((code) => {
    const anchor = code.toLowerCase();
    return `| [\`${code}\`](#${anchor}) | ${httpStatuses.get(code)} | \`${grpcStatuses.get(code)}\` |`;
  }),
].join("\n");
const groups = codes.map((code) => {
  const rows = Object.entries(errorReasons)
    .filter(([, entry]) => entry.code === code)
    .map(([reason, { meaning, text, action }]) => {
      const name = reason === code ? `\`${reason}\` (general)` : `\`${reason}\``;
      return `| ${name} | ${escaped(meaning)} | ${escaped(text)} | ${escaped(action)} |`;
    });
  return [
    `### ${code}`,
    "",
    "| reason | what happened | message | what to do |",
    "|---|---|---|---|",
    ...rows,
  ].join("\n");
});

function escaped(text) {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll("[request", "\\[request");
}

const file = join(root, "docs/errors.md");
const [before, , after] = readFileSync(file, "utf8").split(
  /(?<=<!-- reasons -->\n)([\s\S]*)(?=<!-- end of reasons -->)/,
);
const page = `${before}\n${[statusTable, ...groups].join("\n\n")}\n\n${after}`;
if (process.argv.includes("--print")) process.stdout.write(page);
else writeFileSync(file, page);
