import { cpSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Writes what language models read, as https://llmstxt.org describes it: `llms.txt` with a link for each page,
 * `llms-full.txt` with the text of all pages of `docs/`, and each page as Markdown beside its HTML.
 *
 * @param base path of the site on its server: `/v0.1/`
 */
export function writeForLanguageModels({ pages, out, base, sidebar }) {
  /** Text of a page, with the base in its links. */
  const read = (file) => readFileSync(join(pages, file), "utf8").replaceAll("](/", `](${base}`);
  const introduction = read("index.md").replace(/^---\n[\s\S]*?\n---\n\n/, "# tritonjs\n\n");
  const summary = /^\*\*(.+?)\*\*(.+?)\n\n/ms.exec(introduction);
  const lines = ["# tritonjs", "", `> ${plainText(summary[0])}`, ""];
  const full = [introduction];
  write(join(out, "index.md"), introduction);
  for (const { text, items } of sidebar) {
    lines.push(`## ${text}`, "");
    for (const { text: title, link } of items) {
      const file = `${link.slice(1)}.md`;
      const page = read(file);
      write(join(out, file), page);
      lines.push(`- [${title}](${base}${file}): ${firstSentence(page)}`);
      if (!file.startsWith("api/")) full.push(page);
    }
    lines.push("");
  }
  // HTML has the pictures below `assets`, Markdown below their own paths.
  const hasPictures = (path) => statSync(path).isDirectory() || /\.(?:svg|png)$/.test(path);
  cpSync(pages, out, { recursive: true, filter: hasPictures });
  writeFileSync(join(out, "llms.txt"), lines.join("\n"));
  writeFileSync(join(out, "llms-full.txt"), full.join("\n\n"));
}

function write(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** The first sentence of a page after its title, without Markdown. */
function firstSentence(page) {
  const [, paragraph = ""] = /^# .+\n+([^#\n|][\s\S]*?)(?:\n\n|$)/m.exec(page) ?? [];
  const plain = plainText(paragraph);
  return /^.*?[.:](?=\s|$)/.exec(plain)?.[0] ?? plain;
}

/** The text on one line, without Markdown. */
function plainText(markdown) {
  return markdown
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[*`>]/g, "")
    .replaceAll(/\s+/g, " ")
    .trim();
}
