import { App } from "./app.js";
import { html, render } from "./preact.js";

render(html`<${App} />`, document.getElementById("page"));
