import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);

/** The folder `page` of this package. */
const PAGE = fileURLToPath(new URL("../../page/", import.meta.url));

const SCRIPT = "text/javascript; charset=utf-8";
const STYLE = "text/css; charset=utf-8";

/** A file of the page: where it lies, and its content type. */
interface PageFile {
  readonly path: () => string;
  readonly type: string;
}

const own = (name: string, type: string): [string, PageFile] => [
  name,
  { path: () => join(PAGE, name), type },
];

/** The files that browsers may ask for. A path that is not in this table does not exist. */
const FILES: ReadonlyMap<string, PageFile> = new Map([
  own("index.html", "text/html; charset=utf-8"),
  own("style.css", STYLE),
  ...[
    "main.js",
    "app.js",
    "api.js",
    "charts.js",
    "format.js",
    "half-floats.js",
    "image-input.js",
    "infer-form.js",
    "infer-request.js",
    "model-detail.js",
    "model-list.js",
    "server-panels.js",
  ].map((name) => own(name, SCRIPT)),
  // htm has this file for browsers only: Node resolves its export to another.
  [
    "preact.js",
    { path: () => join(dirname(require.resolve("htm")), "../preact/standalone.module.js"), type: SCRIPT },
  ],
  ["uplot.js", { path: () => require.resolve("uplot/dist/uPlot.iife.min.js"), type: SCRIPT }],
  ["uplot.css", { path: () => require.resolve("uplot/dist/uPlot.min.css"), type: STYLE }],
]);

/**
 * Headers of every answer: the page loads nothing from elsewhere, runs no inline script, takes no text for HTML, and
 * cannot be framed.
 */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

const read = new Map<string, Promise<Buffer>>();

/** Answers with a file of the page; undefined if there is none of this name. Each file is read once. */
export async function pageFile(name: string): Promise<Response | undefined> {
  const file = FILES.get(name);
  if (file === undefined) return undefined;
  let bytes = read.get(name);
  if (bytes === undefined) {
    bytes = readFile(file.path());
    read.set(name, bytes);
    bytes.catch(() => read.delete(name));
  }
  const body = new Uint8Array(await bytes);
  const headers = {
    ...SECURITY_HEADERS,
    "content-type": file.type,
    "content-length": `${body.length}`,
    "cache-control": "no-cache",
  };
  return new Response(body, { headers });
}
