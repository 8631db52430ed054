import { milliseconds, number } from "./format.js";
import { html, useState } from "./preact.js";

/** Identifies a version among all of the page. */
export const keyOf = ({ namespace, name, version }) => JSON.stringify([namespace, name, version]);

const TITLES = [
  ["Requests/s", "wide"],
  ["Failures/s", "wide"],
  ["Waiting", ""],
  ["Oldest", "wide"],
  ["p50", "wide"],
  ["p99", ""],
  ["Busy", "wide"],
];

/** All models with their versions and states. A row leads to its model. */
export function ModelList({ summary, columns, chosen, onChoose }) {
  const [filter, setFilter] = useState("");
  const models = summary.models.filter(({ name }) => name.includes(filter));
  return html`<section class="card" id="models" aria-labelledby="models-title">
    <div class="row">
      <h2 id="models-title">Models</h2>
      ${
        summary.modelCount > 8 &&
        html`<label class="grow">Filter
          <input type="search" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
        </label>`
      }
    </div>
    ${models.length === 0 && html`<p class="muted">No model.</p>`}
    <table class="models">
      <thead>
        <tr>
          <th scope="col">Model</th>
          <th scope="col">State</th>
          ${TITLES.map(([title, kind]) => html`<th scope="col" class=${`number ${kind}`}>${title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${models.map(
          (model) => html`<${ModelRow} key=${keyOf(model)} ...${{ model, columns, chosen, onChoose }} />`,
        )}
      </tbody>
    </table>
    ${
      summary.modelCount > summary.models.length &&
      html`<p class="muted">${summary.modelCount - summary.models.length} more versions are not listed.</p>`
    }
  </section>`;
}

function ModelRow({ model, columns, chosen, onChoose }) {
  const { name, version, namespace, state, reason, counts, point } = model;
  const value = (column) => point?.[columns.indexOf(column)];
  const isChosen = chosen !== undefined && keyOf(chosen) === keyOf(model);
  return html`<tr class=${isChosen ? "chosen" : ""}>
    <th scope="row">
      <button type="button" class="link" aria-pressed=${isChosen} onClick=${() => onChoose(model)}>${name}</button>
      ${" "}<span class="muted">${version}</span>
      ${namespace !== "" && html`<span class="muted"> ${namespace}</span>`}
    </th>
    <td><${State} state=${state} reason=${reason} /></td>
    <td class="number wide">${number(value("requestsPerSecond"))}</td>
    <td class=${`number wide ${value("failuresPerSecond") > 0 ? "bad" : ""}`}>${number(value("failuresPerSecond"))}</td>
    <td class="number">${number(value("queued"))}</td>
    <td class="number wide">${milliseconds(value("oldestMs"))}</td>
    <td class="number wide">${milliseconds(value("requestP50"))}</td>
    <td class="number">${milliseconds(value("requestP99"))}</td>
    <td class="number wide">${counts === undefined ? "–" : `${counts.busyInstances}/${counts.instances}`}</td>
  </tr>`;
}

/** A state with its reason. The text says it, and the colour only repeats it. */
export function State({ state, reason }) {
  return html`<span class=${`state ${state.toLowerCase()}`}>${state}</span>
    ${reason !== "" && html`<span class="reason">${reason}</span>`}`;
}
