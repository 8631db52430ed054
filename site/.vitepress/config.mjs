import { readFileSync } from "node:fs";
import { slug } from "github-slugger";
import { defineConfig } from "vitepress";

/** What `build.mjs` has found: the version, the base of all addresses, the output folder, and the sidebar. */
const { version, base, out, sidebar } = JSON.parse(readFileSync(process.env.TRITONJS_SITE, "utf8"));

const isReference = (path) => path.startsWith("api/");

/** The text of a page that the search finds: a guide's whole text, the exported names of a page of the reference. */
function searchedText(source, env, markdown) {
  const html = markdown.render(source, env);
  return isReference(env.relativePath) ? html.match(/<h[1-3] [\s\S]*?<\/h[1-3]>/g)?.join("\n") : html;
}

export default defineConfig({
  title: "tritonjs",
  description: "Triton's serving behaviour inside your Node.js process.",
  base,
  srcDir: ".pages",
  outDir: out,
  cleanUrls: false,
  // A link to a page that does not exist fails the build. Links to localhost are examples.
  ignoreDeadLinks: "localhostLinks",
  markdown: {
    // Markdown of this project has no HTML.
    html: false,
    // The same anchors as on GitHub.
    anchor: { slugify: slug },
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  },
  // Without an icon of its own, a browser asks for /favicon.ico.
  head: [
    ["link", { rel: "icon", href: "data:," }],
    ["link", { rel: "alternate", type: "text/markdown", href: `${base}llms.txt`, title: "llms.txt" }],
  ],
  themeConfig: {
    search: {
      provider: "local",
      options: {
        _render: searchedText,
        miniSearch: {
          searchOptions: {
            // A guide is what most readers look for. The function runs in the browser, so it stands alone.
            boostDocument: (page) => (page.includes("/api/") ? 0.25 : 1),
          },
        },
      },
    },
    outline: { level: [2, 3] },
    sidebar,
    nav: [
      { text: "Getting started", link: "/getting-started" },
      { text: "API", link: "/api/core" },
      { text: `Version ${version}`, link: "https://github.com/tritonjs/tritonjs/blob/main/CHANGELOG.md" },
    ],
    socialLinks: [{ icon: "github", link: "https://github.com/tritonjs/tritonjs" }],
    editLink: {
      pattern: ({ filePath }) =>
        filePath === "index.md"
          ? "https://github.com/tritonjs/tritonjs/edit/main/README.md"
          : `https://github.com/tritonjs/tritonjs/edit/main/docs/${filePath}`,
    },
  },
});
