/*
 * `node scripts/write-errors-page.mjs`: writes the table of reasons into docs/errors.md, from the table of
 * `@tritonjs/protocol` and the statuses of both protocols. With --print it writes the page to standard output instead.
 * Build first.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errorReasons, httpStatusOf } from "../packages/protocol/dist/index.js";
import { root } from "./run.mjs";

const grpcSource = readFileSync(join(root, "packages/grpc/src/status-from-code.ts"), "utf8");
const grpcStatuses = new Map(
  [...grpcSource.matchAll(/^ {2}([A-Z_]+): STATUS\.([A-Z_]+),$/gm)].map(([, code, status]) => [code, status]),
);

const codes = [...new Set(Object.values(errorReasons).map(({ code }) => code))];
const statusTable = [
  "| code | HTTP | gRPC |",
  "|---|---|---|",
  ...codes.map((code) => {
    const anchor = code.toLowerCase();
    return `| [\`${code}\`](#${anchor}) | ${httpStatusOf(code)} | \`${grpcStatuses.get(code)}\` |`;
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
