import { milliseconds, number } from "./format.js";
import { html, useState } from "./preact.js";

/** Identifies a version among all of the page. */
export const keyOf = ({ namespace, name, version }) => JSON.stringify([namespace, name, version]);

/** Columns: the title, the class, and the value by which the models are sorted. */
const COLUMNS = [
  ["Model", "", ({ name }) => name],
  ["State", "", ({ state }) => state],
  ["Requests/s", "number wide", (_model, point) => point("requestsPerSecond")],
  ["Failures/s", "number wide", (_model, point) => point("failuresPerSecond")],
  ["Waiting", "number", (_model, point) => point("queued")],
  ["Oldest", "number wide", (_model, point) => point("oldestMs")],
  ["p50", "number wide", (_model, point) => point("requestP50")],
  ["p99", "number", (_model, point) => point("requestP99")],
  ["Busy", "number wide", ({ counts }) => counts?.busyInstances],
];

/** Models from which the list scrolls in a box of its own, and rows have one height. */
const LONG = 30;
/** Height of a row of a long list in pixels, as style.css has it. */
const ROW_PX = 32;
/** Rows of a long list that exist at a time: those in the box, and some around them. */
const DRAWN = 40;
const BEFORE = 8;

/** All models with their versions and states. A row leads to its model. */
export function ModelList({ summary, columns, chosen, onChoose }) {
  const [filter, setFilter] = useState("");
  const [order, setOrder] = useState(undefined);
  const [scrolled, setScrolled] = useState(0);
  const models = sorted(matching(summary.models, filter), order, columns);
  const isLong = summary.models.length > LONG;
  const first = isLong
    ? Math.max(0, Math.min(Math.floor(scrolled / ROW_PX) - BEFORE, models.length - DRAWN))
    : 0;
  const drawn = isLong ? models.slice(first, first + DRAWN) : models;
  const below = models.length - first - drawn.length;
  const scroll = isLong && {
    ...{ class: "rows", tabindex: 0, role: "region", "aria-label": "List of models" },
    onScroll: ({ currentTarget }) => setScrolled(currentTarget.scrollTop),
  };
  return html`<section class="card" id="models" aria-labelledby="models-title">
    <div class="row">
      <h2 id="models-title">Models</h2>
      ${
        summary.models.length > 8 &&
        html`<label class="grow">Filter
            <input type="search" placeholder="name, state or reason" value=${filter} onInput=${(event) => setFilter(event.target.value)} />
          </label>
          <span class="muted" role="status">${models.length} of ${summary.models.length}</span>`
      }
    </div>
    ${models.length === 0 && html`<p class="muted">No model.</p>`}
    <div ...${scroll}>
      <table class=${isLong ? "models long" : "models"} aria-rowcount=${models.length + 1}>
        <thead>
          <tr aria-rowindex="1">
            ${COLUMNS.map(([title, kind]) => html`<${Title} ...${{ title, kind, order, setOrder }} />`)}
          </tr>
        </thead>
        <tbody>
          ${first > 0 && html`<${Space} rows=${first} />`}
          ${drawn.map(
            (model, index) =>
              html`<${ModelRow} key=${keyOf(model)} index=${first + index + 2} ...${{ model, columns, chosen, onChoose }} />`,
          )}
          ${below > 0 && html`<${Space} rows=${below} />`}
        </tbody>
      </table>
    </div>
  </section>`;
}

function matching(models, filter) {
  const wanted = filter.trim().toLowerCase();
  if (wanted === "") return models;
  return models.filter(({ name, state, reason }) =>
    [name, state, reason].some((text) => text.toLowerCase().includes(wanted)),
  );
}

/** The models by the column that the viewer chose. Models without a value come last. */
function sorted(models, order, columns) {
  if (order === undefined) return models;
  const [, , sortedBy] = COLUMNS.find(([title]) => title === order.title);
  const value = (model) => sortedBy(model, (name) => model.point?.[columns.indexOf(name)]) ?? undefined;
  const rows = models.map((model) => ({ model, value: value(model) }));
  rows.sort(({ value: a }, { value: b }) => {
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
    const up = a < b ? -1 : Number(a > b);
    return order.isDown ? -up : up;
  });
  return rows.map(({ model }) => model);
}

/** A title that sorts the list: first by the largest numbers or from A, then the other way, then as it was. */
function Title({ title, kind, order, setOrder }) {
  const isChosen = order?.title === title;
  const downFirst = kind.startsWith("number");
  const next = () => {
    if (!isChosen) setOrder({ title, isDown: downFirst });
    else setOrder(order.isDown === downFirst ? { title, isDown: !downFirst } : undefined);
  };
  const sort = isChosen ? (order.isDown ? "descending" : "ascending") : "none";
  return html`<th scope="col" class=${kind} aria-sort=${sort}>
    <button type="button" class="sort" onClick=${next}>${title}${isChosen && (order.isDown ? " ↓" : " ↑")}</button>
  </th>`;
}

/** The place of rows that are not drawn. */
function Space({ rows }) {
  return html`<tr aria-hidden="true"><td class="space" colspan=${COLUMNS.length} style=${{ height: `${rows * ROW_PX}px` }}></td></tr>`;
}

function ModelRow({ model, index, columns, chosen, onChoose }) {
  const { name, version, namespace, state, reason, counts, point } = model;
  const value = (column) => point?.[columns.indexOf(column)];
  const isChosen = chosen !== undefined && keyOf(chosen) === keyOf(model);
  return html`<tr class=${isChosen ? "chosen" : ""} aria-rowindex=${index}>
    <th scope="row">
      <button type="button" class="link" aria-pressed=${isChosen} onClick=${() => onChoose(model)}>${name}</button>
      ${" "}<span class="muted">${version}</span>
      ${namespace !== "" && html`<span class="muted"> ${namespace}</span>`}
    </th>
    <td title=${reason}><${State} state=${state} reason=${reason} /></td>
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
