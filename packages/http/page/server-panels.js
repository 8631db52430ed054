import { bytes, clockTime, milliseconds, number, percent } from "./format.js";
import { html } from "./preact.js";

/** A list of names and values. */
export function Facts({ facts }) {
  return html`<dl class="facts">
    ${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

/** This process, and the response cache. */
export function ServerPanel({ summary }) {
  const { process, cache } = summary;
  return html`<section class="card">
    <h2>Process</h2>
    <${Facts}
      facts=${[
        ["CPU", percent(process.cpu)],
        ["Event loop", percent(process.eventLoop)],
        ["Memory", bytes(process.residentBytes)],
        ["Heap", bytes(process.heapBytes)],
      ]}
    />
    ${cache !== null && html`<${CachePanel} cache=${cache} />`}
  </section>`;
}

function CachePanel({ cache }) {
  const each = (total, count) => (count === 0 ? "–" : milliseconds(total / count / 1000));
  return html`<h3>Response cache</h3>
    <${Facts}
      facts=${[
        ["Used", percent(cache.utilization)],
        ["Entries", number(cache.entries)],
        ["Hits", `${number(cache.hits)} of ${number(cache.lookups)}`],
        ["Evicted", number(cache.evictions)],
        ["Look-up", each(cache.lookupMicroseconds, cache.lookups)],
      ]}
    />`;
}

/** The last messages of the log. */
export function LogPanel({ log }) {
  return html`<section class="card">
    <h2>Log</h2>
    ${log.length === 0 && html`<p class="muted">The log is empty.</p>`}
    <ol class="log" tabindex="0" aria-label="Last messages of the log">
      ${[...log].reverse().map(
        ({ number: key, at, level, message }) => html`<li key=${key} class=${level}>
          <time>${clockTime(at)}</time> <b>${level}</b> <span class="text">${message}</span>
        </li>`,
      )}
    </ol>
  </section>`;
}

/** The settings in effect. */
export function ConfigurationPanel({ info }) {
  const { server, node, modelControlMode, log, configuration } = info;
  const rows = [
    ["server", `${server.name} ${server.version}`],
    ["node", node],
    ["extensions", server.extensions.join(", ")],
    ["model control mode", modelControlMode],
    ...Object.entries(log).map(([name, value]) => [`log ${name}`, String(value)]),
    ...Object.entries(configuration),
  ];
  return html`<details class="card">
    <summary><h2>Configuration</h2></summary>
    <table class="settings">
      <tbody>${rows.map(([name, value]) => html`<tr><th scope="row">${name}</th><td>${value}</td></tr>`)}</tbody>
    </table>
  </details>`;
}
