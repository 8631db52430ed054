import { send } from "./api.js";
import * as format from "./format.js";
import { html, useEffect, useMemo, useRef, useState } from "./preact.js";
import { Facts } from "./server-panels.js";

/** What the module of an extension gets to show its data with. */
const TOOLS = { ...format, html, useEffect, useMemo, useRef, useState, Facts, send };

/** What an extension of the server shows: by its own module, or as JSON. */
export function ExtensionPanel({ name, hasView, data, onHeader }) {
  const [view, setView] = useState(undefined);
  useEffect(() => {
    if (hasView) import(`./${name}.js`).then((module) => setView(() => module.default(TOOLS)));
  }, [name, hasView]);
  if (hasView) return view && html`<${view} data=${data} onHeader=${onHeader} />`;
  if (data === undefined) return null;
  return html`<section class="card" aria-label=${name}>
    <h2>${name}</h2>
    <pre tabindex="0">${JSON.stringify(data, null, 2)}</pre>
  </section>`;
}
