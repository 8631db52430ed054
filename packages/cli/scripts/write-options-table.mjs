/*
 * Writes the table of options into docs/cli.md, from the table that the command parses them with; with --print to
 * standard output instead.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { optionGroups } from "../dist/index.js";

const rows = Object.entries(optionGroups).flatMap(([group, options]) => [
  `| **${group}** | | |`,
  ...Object.entries(options).map(([name, option]) => `| ${cells(name, option).join(" | ")} |`),
]);
const table = ["| option | default | what it does |", "|---|---|---|", ...rows].join("\n");

function cells(name, { argument, initial, description, noEffect }) {
  const value = argument === undefined ? "" : `=${argument.startsWith("<") ? argument : `<${argument}>`}`;
  const what = noEffect === undefined ? description : `*No effect: ${noEffect}.*`;
  return [`\`--${name}${value}\``, defaultOf(argument, initial), escaped(what)];
}

function defaultOf(argument, initial) {
  const isEmpty = initial === undefined || initial === "" || Array.isArray(initial) || argument === undefined;
  return isEmpty ? "" : `\`${initial}\``;
}

function escaped(text) {
  return text
    .replaceAll("|", "\\|")
    .replaceAll("<", "&lt;")
    .replaceAll("*", (star) => (text.startsWith("*No effect") ? star : `\\${star}`));
}

const file = new URL("../../../docs/cli.md", import.meta.url);
const [before, , after] = readFileSync(file, "utf8").split(
  /(?<=<!-- options -->\n)([\s\S]*)(?=<!-- end of options -->)/,
);
const text = `${before}${table}\n${after}`;
if (process.argv.includes("--print")) process.stdout.write(text);
else writeFileSync(file, text);
