import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import GithubSlugger from "github-slugger";
import { Application, LogLevel, ReflectionKind } from "typedoc";
import { root } from "../scripts/run.mjs";

/** Entries that have no page: generated code, whose reference is the protocol, and what only our own packages import. */
const LEFT_OUT = /^@tritonjs\/(?:protocol\/grpc|[\w-]+\/internal)(?:\/|$)/;

/** The entries of all packages that programs import, as the declarations that are published. */
export function publicEntries() {
  const packages = join(root, "packages");
  return readdirSync(packages)
    .flatMap((folder) => {
      const { name, exports } = JSON.parse(readFileSync(join(packages, folder, "package.json"), "utf8"));
      return Object.entries(exports)
        .filter(([, target]) => target.types !== undefined)
        .map(([subpath, target]) => ({
          name: name + subpath.slice(1),
          page: folder + subpath.slice(1).replaceAll("/", "-"),
          declarations: join(packages, folder, target.types),
        }));
    })
    .filter(({ name }) => !LEFT_OUT.test(name));
}

/**
 * Writes one Markdown page for each entry of a package into `folder`, and returns the items of the sidebar.
 *
 * @throws Error for declarations that typedoc cannot read
 */
export async function writeApiReference(folder) {
  const entries = publicEntries();
  const tsconfig = join(root, "site", "tsconfig.json");
  const app = await Application.bootstrapWithPlugins({
    plugin: ["typedoc-plugin-markdown"],
    entryPoints: entries.map(({ declarations }) => declarations),
    tsconfig,
    outputs: [{ name: "markdown", path: folder }],
    skipErrorChecking: true,
    logLevel: LogLevel.Error,
    disableGit: true,
    disableSources: true,
    excludeExternals: true,
    excludePrivate: true,
    readme: "none",
    outputFileStrategy: "modules",
    hidePageHeader: true,
    hideBreadcrumbs: true,
    hideGroupHeadings: true,
    useHTMLEncodedBrackets: true,
    sanitizeComments: true,
    parametersFormat: "table",
    expandObjects: false,
    entryFileName: "index",
    validation: false,
  });
  const project = await app.convert();
  if (project === undefined) throw new Error("typedoc could not read the declarations of the packages");
  const modules = new Map(project.getChildrenByKind(ReflectionKind.Module).map((one) => [one.name, one]));
  for (const { name, page, declarations } of entries) {
    // typedoc names a module after its path.
    const path = relative(join(root, "packages"), declarations).replace(/(\/index)?\.d\.ts$/, "");
    const module = modules.get(path);
    if (module === undefined) throw new Error(`typedoc has no module for ${name}, expected ${path}`);
    // The name becomes that of the file.
    module.name = page;
  }
  await app.generateOutputs(project);
  const texts = new Map(entries.map(({ page }) => [page, readFileSync(join(folder, `${page}.md`), "utf8")]));
  const anchors = new Map([...texts].map(([page, text]) => [page, anchorsOf(text)]));
  for (const { name, page } of entries) {
    const text = texts.get(page);
    if (!text.startsWith(`# ${page}\n`)) throw new Error(`the reference of ${name} has another title`);
    writeFileSync(join(folder, `${page}.md`), withAnchors(text.replace(page, name), page, anchors));
  }
  return entries.map(({ name, page }) => ({ text: name, link: `/api/${page}` }));
}

/** Anchors of the headings of a page, as GitHub makes them. */
function anchorsOf(text) {
  const slugger = new GithubSlugger();
  const plain = text.replaceAll(/^```[\s\S]*?^```/gm, "");
  return new Set([...plain.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => slugger.slug(plainText(heading))));
}

function plainText(heading) {
  return heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[\\`]/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">");
}

/** The text with each link to an exported name whose heading has another number, or none, corrected. */
function withAnchors(text, page, anchors) {
  return text.replaceAll(/\]\(([\w-]+)?(?:\.md)?#([\w-]+)\)/g, (whole, file, anchor) => {
    const known = anchors.get(file ?? page);
    if (known === undefined || known.has(anchor)) return whole;
    const plain = anchor.replace(/-\d+$/, "");
    if (known.has(plain)) return whole.replace(anchor, plain);
    throw new Error(`the reference of ${page} links to a heading that does not exist: ${whole}`);
  });
}
