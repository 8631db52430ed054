import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Writes what language models read, as https://llmstxt.org describes it: `llms.txt` with a link for each page,
 * `llms-full.txt` with the text of all pages of `docs/`, and each page as Markdown beside its HTML.
 *
 * @param base path of the site on its server: `/v0.1/`
 */
export function writeForLanguageModels({ pages, out, base, sidebar }) {
  const introduction = readFileSync(join(pages, "index.md"), "utf8");
  const summary = /^\*\*(.+?)\*\*(.+?)\n\n/ms.exec(introduction);
  const lines = ["# tritonjs", "", `> ${summary[0].replaceAll("**", "").replaceAll("\n", " ").trim()}`, ""];
  const full = [introduction];
  copyMarkdown(pages, out, "index.md");
  for (const { text, items } of sidebar) {
    lines.push(`## ${text}`, "");
    for (const { text: title, link } of items) {
      const file = `${link.slice(1)}.md`;
      const page = readFileSync(join(pages, file), "utf8");
      copyMarkdown(pages, out, file);
      lines.push(`- [${title}](${base}${file}): ${firstSentence(page)}`);
      if (!file.startsWith("api/")) full.push(page);
    }
    lines.push("");
  }
  writeFileSync(join(out, "llms.txt"), lines.join("\n"));
  writeFileSync(join(out, "llms-full.txt"), full.join("\n\n"));
}

function copyMarkdown(pages, out, file) {
  const target = join(out, file);
  mkdirSync(dirname(target), { recursive: true });
  cpSync(join(pages, file), target);
}

/** The first sentence of a page after its title, without Markdown. */
function firstSentence(page) {
  const [, paragraph = ""] = /^# .+\n+([^#\n|][\s\S]*?)(?:\n\n|$)/m.exec(page) ?? [];
  const plain = paragraph
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[*`>]/g, "")
    .replaceAll(/\s+/g, " ");
  return /^.*?[.:](?=\s|$)/.exec(plain)?.[0] ?? plain;
}
