import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../support/repository.js";

/** A document of the repository. */
export interface Document {
  /** Path from the root, with slashes. */
  readonly path: string;
  readonly text: string;
}

/** Pages in the root, the README first. */
const ROOT_PAGES = ["README.md", "CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md", "SECURITY.md"];

/** The documents that people read: the pages in the root and all of docs/. */
export function documents(): Document[] {
  const docs = readdirSync(join(repositoryRoot, "docs")).filter((name) => name.endsWith(".md"));
  return [...ROOT_PAGES, ...docs.map((name) => `docs/${name}`)].map((path) => ({
    path,
    text: readFileSync(join(repositoryRoot, path), "utf8").replaceAll("\r\n", "\n"),
  }));
}

/** A block of code in a document. */
export interface Block {
  /** Path of the document and line of the block: `README.md:9`. */
  readonly where: string;
  readonly code: string;
}

/** The blocks of a language in a document. */
export function blocks({ path, text }: Document, language: string): Block[] {
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, "gms"))].map((match) => ({
    where: `${path}:${text.slice(0, match.index).split("\n").length}`,
    code: match[1]!,
  }));
}

/** What `console.log(...); // expected` lines of a block promise, in order. Text after a colon explains. */
export function promisedOutput(code: string): string[] {
  return [...code.matchAll(/^\s*console\.log\(.*\);\s*\/\/ (.*)$/gm)].map(([, comment]) => comment!);
}

/** Relative links of a document, without their fragments. */
export function relativeLinks({ text }: Document): string[] {
  return [...text.matchAll(/\]\((?!\w+:|#)([^)#]+)(?:#[^)]*)?\)/g)].map(([, target]) => target!);
}
