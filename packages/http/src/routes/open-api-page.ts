import { createHash } from "node:crypto";
import { type OpenApiDocument, openApiDocument } from "./open-api.js";
import { getRoute, type Route } from "./route.js";

/**
 * The OpenAPI document as a page for people, beside `openapi.json`. It is one file without scripts, so it loads nothing
 * and works without a connection to the internet.
 */
export const openApiPageRoute: Route = getRoute(/^\/v2\/docs\/?$/, "metadata", () => {
  page ??= Buffer.from(openApiPage(openApiDocument()));
  return { status: 200, headers: PAGE_HEADERS, body: page };
});

let page: Uint8Array | undefined;

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
:root { --back: #fff; --text: #1a1a1a; --quiet: #595959; --link: #0645ad; --line: #8886; --code: #8881; }
@media (prefers-color-scheme: dark) { :root { --back: #16181c; --text: #e8e8e8; --quiet: #b0b0b0; --link: #9db8ff; } }
html { background: var(--back); color: var(--text); }
a { color: var(--link); }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; }
h2 { border-bottom: 1px solid var(--line); margin-top: 2.5rem; }
h3 { font-size: 1rem; margin: 1rem 0 0.25rem; }
code { background: var(--code); border-radius: 3px; overflow-wrap: anywhere; padding: 0.1em 0.3em; }
details { border: 1px solid var(--line); border-radius: 4px; margin: 0.5rem 0; padding: 0 0.75rem; }
details > :last-child { margin-bottom: 0.75rem; }
summary { cursor: pointer; padding: 0.5rem 0; }
summary b { display: inline-block; min-width: 3.5rem; }
summary span { color: var(--quiet); }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.75rem 0.25rem 0; text-align: left; vertical-align: top; }
`;

const PAGE_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy":
    `default-src 'none'; style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'; ` +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** The members of the document that the page shows. */
interface ShownDocument {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, ShownOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, ShownSchema>> };
}

interface ShownOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly requestBody?: { readonly content: ShownContent; readonly required: boolean };
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: ShownContent }>
  >;
}

type ShownContent = Readonly<Record<string, { readonly schema?: ShownSchema }>>;

interface ShownSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly items?: ShownSchema;
  readonly properties?: Readonly<Record<string, ShownSchema>>;
  readonly additionalProperties?: ShownSchema | boolean;
  readonly required?: readonly string[];
}

/** Writes the page. */
export function openApiPage(document: OpenApiDocument): string {
  const { info, paths, components } = document as unknown as ShownDocument;
  const operations = Object.entries(paths).flatMap(([path, { parameters: _, ...methods }]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const groups = [...new Set(operations.flatMap(({ operation }) => operation.tags))];
  const title = `${info.title} ${info.version}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${html(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>${html(title)}</h1>
<p>${html(info.description)} For generators of clients: <a href="openapi.json">openapi.json</a>.</p>
<nav aria-label="Groups"><p>${groups.map((group) => `<a href="#group-${group}">${group}</a>`).join(" · ")} · <a href="#schemas">schemas</a></p></nav>
</header>
<main>
${groups
  .map((group) => {
    const ofGroup = operations.filter(({ operation }) => operation.tags.includes(group));
    return `<section aria-labelledby="group-${group}">
<h2 id="group-${group}">${group}</h2>
${ofGroup.map(operationHtml).join("\n")}
</section>`;
  })
  .join("\n")}
<section aria-labelledby="schemas">
<h2 id="schemas">schemas</h2>
${Object.entries(components.schemas).map(schemaHtml).join("\n")}
</section>
</main>
</body>
</html>
`;
}

interface ShownRoute {
  readonly path: string;
  readonly method: string;
  readonly operation: ShownOperation;
}

function operationHtml({ path, method, operation }: ShownRoute): string {
  const { operationId, summary, requestBody, responses } = operation;
  const body =
    requestBody &&
    `<h3>Body${requestBody.required ? "" : ", optional"}</h3>\n<p>${contentHtml(requestBody.content)}</p>\n`;
  const answers = Object.entries(responses).map(
    ([status, { description, content }]) =>
      `<tr><th scope="row">${html(status)}</th><td>${html(description)}</td><td>${contentHtml(content)}</td></tr>`,
  );
  return `<details id="${operationId}">
<summary><b>${method.toUpperCase()}</b> <code>${html(path)}</code> <span>${html(summary)}</span></summary>
${body ?? ""}<h3>Answers</h3>
<table><thead><tr><th scope="col">status</th><th scope="col">meaning</th><th scope="col">body</th></tr></thead><tbody>
${answers.join("\n")}
</tbody></table>
</details>`;
}

function contentHtml(content: ShownContent = {}): string {
  const types = Object.entries(content).map(([type, { schema }]) =>
    schema === undefined ? `<code>${html(type)}</code>` : `${typeHtml(schema)} as <code>${html(type)}</code>`,
  );
  return types.length === 0 ? "none" : types.join(", or ");
}

function schemaHtml([name, schema]: readonly [string, ShownSchema]): string {
  const { properties = {}, description = "", required = [] } = schema.items ?? schema;
  const rows = Object.entries(properties).map(([property, type]) => {
    const about = `${required.includes(property) ? "required. " : ""}${type.description ?? ""}`;
    return `<tr><th scope="row"><code>${html(property)}</code></th><td>${typeHtml(type)}</td><td>${html(about)}</td></tr>`;
  });
  const table =
    rows.length === 0
      ? ""
      : `<table><thead><tr><th scope="col">member</th><th scope="col">type</th><th scope="col">meaning</th></tr></thead><tbody>
${rows.join("\n")}
</tbody></table>
`;
  return `<h3 id="schema-${name}">${name}</h3>
<p>${typeHtml({ ...schema, properties: {} })}. ${html(description)}</p>
${table}`;
}

const REFERENCE = "#/components/schemas/";

/** A type in one line. Types without a name of their own list their members. */
function typeHtml(schema: ShownSchema): string {
  const { $ref, type, format, items, properties = {}, additionalProperties } = schema;
  if ($ref !== undefined) {
    const name = html($ref.slice(REFERENCE.length));
    return `<a href="#schema-${name}">${name}</a>`;
  }
  if (type === "array") return items === undefined ? "array" : `array of ${typeHtml(items)}`;
  if (schema.enum !== undefined) return schema.enum.map((one) => `<code>${html(one)}</code>`).join(" ");
  const members = Object.entries(properties).map(
    ([name, one]) => `<code>${html(name)}</code>: ${typeHtml(one)}`,
  );
  if (members.length > 0) return `object { ${members.join(", ")} }`;
  if (typeof additionalProperties === "object")
    return `object with values: ${typeHtml(additionalProperties)}`;
  const name = html([type ?? "any"].flat().join(" or "));
  return format === undefined ? name : `${name} (${html(format)})`;
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function html(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character]!);
}
