import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { root } from "../scripts/run.mjs";
import { FEATURES, SECTIONS } from "./sections.mjs";

const SOURCE = "https://github.com/tritonjs/tritonjs";

/**
 * Copies the README as the first page, and all of `docs/`, into `folder`. Links to other files of the repository become
 * links to its sources.
 *
 * @returns the sidebar
 * @throws Error for a page that is in no section, a section's page that does not exist, and a link to no file
 */
export function collectPages(folder) {
  const docs = join(root, "docs");
  const pages = markdownFiles(docs);
  const listed = SECTIONS.flatMap((section) => section.pages);
  const missing = pages.filter((page) => !listed.includes(page));
  if (missing.length > 0) throw new Error(`site/sections.mjs lacks pages of docs/: ${missing.join(", ")}`);
  mkdirSync(folder, { recursive: true });
  cpSync(docs, folder, { recursive: true, filter: (file) => !file.endsWith(".md") });
  const titles = new Map();
  for (const page of listed) {
    const file = join(docs, `${page}.md`);
    const text = readFileSync(file, "utf8");
    titles.set(page, /^# (.+)$/m.exec(text)[1]);
    write(folder, `${page}.md`, withLinks(text, file));
  }
  const readme = join(root, "README.md");
  write(folder, "index.md", landingPage(withLinks(readFileSync(readme, "utf8"), readme)));
  return SECTIONS.map(({ text, pages }) => ({
    text,
    items: pages.map((page) => ({ text: titles.get(page), link: `/${page}` })),
  }));
}

/** The first page: what tritonjs is and where to go, and below it the README without its title. */
function landingPage(readme) {
  const [, title, text] = /^# (.+)\n\n([\s\S]+)$/.exec(readme);
  const front = {
    layout: "home",
    hero: {
      name: title,
      text: "Serve models from your Node.js process",
      tagline: "A function or a model file, behind Triton's batching, instances, deadlines and metrics.",
      actions: [
        { theme: "brand", text: "Getting started", link: "/getting-started" },
        { theme: "alt", text: "Features", link: "/features" },
        { theme: "alt", text: "API", link: "/api/core" },
      ],
    },
    features: FEATURES,
  };
  return `---\n${JSON.stringify(front)}\n---\n\n${text}`;
}

/** Pages below a folder, without the extension. */
function markdownFiles(folder) {
  return readdirSync(folder, { recursive: true })
    .filter((file) => file.endsWith(".md"))
    .map((file) => file.slice(0, -".md".length).replaceAll("\\", "/"));
}

function write(folder, path, text) {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** The text with links that lead to a page of the site, or to the sources. Code blocks stay as they are. */
function withLinks(text, file) {
  return text
    .replaceAll(/^<!--.*-->\n/gm, "")
    .split(/(^```[\s\S]*?^```)/m)
    .map((part, i) => (i % 2 === 1 ? part : part.replaceAll(/\]\(([^)\s]+)\)/g, linkIn(file))))
    .join("");
}

function linkIn(file) {
  return (whole, link) => {
    if (/^(https?:|mailto:|#)/.test(link)) return whole;
    const [path, anchor] = link.split("#");
    const target = relative(root, normalize(join(dirname(file), path))).replaceAll("\\", "/");
    const place = join(root, target);
    if (!existsSync(place))
      throw new Error(`${relative(root, file)} links to a file that does not exist: ${link}`);
    const suffix = anchor === undefined ? "" : `#${anchor}`;
    if (target === "README.md") return `](/index.md${suffix})`;
    if (target.startsWith("docs/")) return `](/${target.slice("docs/".length)}${suffix})`;
    return `](${SOURCE}/${statSync(place).isDirectory() ? "tree" : "blob"}/main/${target}${suffix})`;
  };
}
