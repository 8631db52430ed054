/*
 * `npm run docs`: builds the documentation site from README.md, docs/ and the declarations of all packages. It writes
 * site/dist, with the version in each address (/v0.1/). `npm run docs -- --serve` then serves it on a local port. With
 * `--base /tritonjs/`, the site is for a server that has it below that path.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { install } from "../scripts/install.mjs";
import { build, root, run } from "../scripts/run.mjs";

const site = join(root, "site");
const pages = join(site, ".pages");
const state = join(pages, "site.json");

const { values } = parseArgs({
  options: {
    base: { type: "string", default: "/" },
    // Leaves the packages as they are, for tests that run beside others.
    built: { type: "boolean", default: false },
    serve: { type: "boolean", default: false },
  },
});
if (!values.built) {
  install();
  build();
}
install(site);

// Imported after their installation.
const { writeApiReference } = await import("./api-reference.mjs");
const { collectPages } = await import("./collect-pages.mjs");
const { writeForLanguageModels } = await import("./language-models.mjs");

const { version } = JSON.parse(readFileSync(join(root, "packages", "core", "package.json"), "utf8"));
const folder = `v${version.split(".").slice(0, 2).join(".")}/`;
const base = values.base + folder;
const out = join(site, "dist", folder);

rmSync(pages, { recursive: true, force: true });
rmSync(out, { recursive: true, force: true });
mkdirSync(pages, { recursive: true });
const api = await writeApiReference(join(pages, "api"));
const sidebar = [...collectPages(pages), { text: "API", items: api }];
writeFileSync(state, JSON.stringify({ version, base, out, sidebar }));
run(process.execPath, [join(site, "node_modules/vitepress/bin/vitepress.js"), "build"], {
  cwd: site,
  env: { ...process.env, TRITONJS_SITE: state },
});
writeForLanguageModels({ pages, out, base, sidebar });
// The address without a version leads to this one.
writeFileSync(
  join(site, "dist", "index.html"),
  `<!doctype html><meta charset="utf-8"><title>tritonjs</title><meta http-equiv="refresh" content="0; url=./${folder}">` +
    `<link rel="canonical" href="./${folder}"><a href="./${folder}">tritonjs ${version}</a>\n`,
);
if (values.serve) {
  const vitepress = join(site, "node_modules/vitepress/bin/vitepress.js");
  run(process.execPath, [vitepress, "preview"], { cwd: site, env: { ...process.env, TRITONJS_SITE: state } });
}
