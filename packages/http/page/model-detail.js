import { modelPath, post, send } from "./api.js";
import { Bars, Chart } from "./charts.js";
import { bytes, clockTime, mean, milliseconds, number, percent } from "./format.js";
import { InferForm } from "./infer-form.js";
import { State } from "./model-list.js";
import { html, useEffect, useState } from "./preact.js";
import { Facts } from "./server-panels.js";

const CUTS = {
  SIZE: "It has the maximum size, or the next request would exceed it.",
  PREFERRED: "It has a preferred size.",
  DELAY: "Its oldest request has waited for the whole queue delay.",
  SHAPE: "The next request has other shapes or inputs.",
  COST: "It has the maximum cost.",
  POLICY: "Adaptive batching decided that waiting does not pay.",
  INSTANCE: "An instance took all requests that were waiting.",
  FLUSH: "The model stops.",
};

const CHARTS = [
  {
    title: "Requests a second",
    series: [
      { label: "answered", column: "requestsPerSecond", color: "--one" },
      { label: "failed", column: "failuresPerSecond", color: "--bad" },
    ],
  },
  {
    title: "Latency",
    unit: " ms",
    series: [
      { label: "p50", column: "requestP50", color: "--one" },
      { label: "p90", column: "requestP90", color: "--two" },
      { label: "p99", column: "requestP99", color: "--three" },
    ],
  },
  {
    title: "p99 in queue and in compute",
    unit: " ms",
    series: [
      { label: "queue", column: "queueP99", color: "--two" },
      { label: "compute", column: "computeP99", color: "--one" },
    ],
  },
  {
    title: "Waiting requests and batch size",
    series: [
      { label: "waiting", column: "queued", color: "--two" },
      { label: "mean batch", column: "meanBatch", color: "--one" },
    ],
  },
];

/** Everything about one model version. */
export function ModelDetail({ model, detail, points, columns, scheme, control, onHeader }) {
  const { name, version, state, reason } = model;
  const last = points.at(-1);
  const value = (column) => last?.[columns.indexOf(column)];
  const pair = (part) => `${milliseconds(value(`${part}P50`))} / ${milliseconds(value(`${part}P99`))}`;
  return html`<section class="detail" aria-labelledby="detail-title">
    <div class="card">
      <div class="row">
        <h2 id="detail-title">${name} <span class="muted">${version}</span></h2>
        <span><${State} state=${state} reason=${reason} /></span>
        <${Actions} model=${model} control=${control} onHeader=${onHeader} />
      </div>
      <${Facts}
        facts=${[
          ["Requests/s", number(value("requestsPerSecond"))],
          ["Waiting", number(value("queued"))],
          ["Oldest", milliseconds(value("oldestMs"))],
          ["In flight", number(detail?.inflight)],
          ["Latency p50 / p99", pair("request")],
          ["in queue", pair("queue")],
          ["in compute", pair("compute")],
          ["Mean batch", number(value("meanBatch"))],
        ]}
      />
    </div>
    <div class="charts">
      ${CHARTS.map((chart) => html`<${Chart} key=${chart.title} ...${{ ...chart, points, columns, scheme }} />`)}
    </div>
    ${detail?.statistics && html`<${Panels} model=${model} detail=${detail} onHeader=${onHeader} />`}
    ${state === "READY" && html`<${InferForm} key=${`${name}/${version}`} model=${model} onHeader=${onHeader} />`}
    <${ConfigPanel} key=${`config ${name}/${version}`} model=${model} onHeader=${onHeader} />
  </section>`;
}

/** Runs an operation, and shows its error. */
function useOperation(onHeader) {
  const [outcome, setOutcome] = useState({ busy: false, text: "" });
  const run = async (operation, done = "") => {
    setOutcome({ busy: true, text: "" });
    try {
      await operation();
      setOutcome({ busy: false, text: done });
    } catch (error) {
      if (error.header !== undefined) onHeader(error);
      setOutcome({ busy: false, text: error.message });
    }
  };
  return [outcome, run];
}

function Actions({ model, control, onHeader }) {
  const [{ busy, text }, run] = useOperation(onHeader);
  if (model.bound || control !== "explicit") return null;
  const path = `v2/repository/models/${model.name}`;
  return html`<span class="row">
    <button type="button" disabled=${busy} onClick=${() => run(() => post(`${path}/load`))}>
      ${model.state === "READY" ? "Reload" : "Load"}
    </button>
    ${
      model.state === "READY" &&
      html`<button type="button" disabled=${busy} onClick=${() => run(() => post(`${path}/unload`))}>Unload</button>`
    }
    <span role="status">${text}</span>
  </span>`;
}

function Panels({ model, detail, onHeader }) {
  const { statistics, queue, failures, refused, errors, sequences } = detail;
  const { inferenceStats: times } = statistics;
  const sizes = statistics.batchStats.map(({ batchSize, computeInfer }) => ({
    name: String(batchSize),
    value: computeInfer.count,
    note: `rows; ${milliseconds(mean(computeInfer))} each`,
  }));
  const cuts = Object.entries(queue.cuts)
    .filter(([, count]) => count > 0)
    .map(([reason, count]) => ({ name: reason, value: count, note: CUTS[reason] }));
  const cached = times.cacheHit.count + times.cacheMiss.count > 0;
  return html`${detail.deadlines.length > 0 && html`<${Deadlines} classes=${detail.deadlines} />`}
  <div class="panels">
    <${Bars} title="Batch sizes (executions)" rows=${sizes} empty="No batch has run." />
    <${Bars} title="Why batches were cut" rows=${cuts} empty="No batcher has cut a batch." />
    <${Instances} model=${model} detail=${detail} onHeader=${onHeader} />
    <section class="card">
      <h3>Failures</h3>
      <${Facts}
        facts=${[
          ...Object.entries(failures).map(([reason, count]) => [reason.toLowerCase(), number(count)]),
          ["refused on arrival", number(refused)],
        ]}
      />
      <ol class="errors">
        ${errors.map(
          ({ at, code, message, count }) => html`<li>
            <time>${clockTime(at)}</time> <b>${code}</b> ${count > 1 && `× ${number(count)} `}
            <span class="text">${message}</span>
          </li>`,
        )}
      </ol>
    </section>
    <section class="card">
      <h3>Since the model was loaded</h3>
      <${Facts}
        facts=${[
          ["Requests", number(times.success.count)],
          ["Rows", number(statistics.inferenceCount)],
          ["Executions", number(statistics.executionCount)],
          ["Mean in queue", milliseconds(mean(times.queue))],
          ["Mean compute", milliseconds(mean(times.computeInfer))],
          ["Loading took", milliseconds(detail.loadMilliseconds)],
          ...(cached
            ? [
                ["Cache hits", number(times.cacheHit.count)],
                ["Cache misses", number(times.cacheMiss.count)],
              ]
            : []),
          ...(sequences
            ? [
                ["Sequences in slots", number(sequences.inSlots)],
                ["in the backlog", number(sequences.inBacklog)],
              ]
            : []),
        ]}
      />
    </section>
  </div>`;
}

const CAUSES = {
  queue: "It waited for others of its class.",
  batch: "Its batch, or the one before it, was too large for it.",
  other_class: "It waited for other callers or priorities.",
  other_model: "Other models had the resources.",
  overload: "More arrived than the instances can do.",
  cold: "Too little was known of the model's times.",
  slow_model: "A batch took longer than expected, or the limit is shorter than a batch of one.",
};

/** What became of requests with deadlines: a row for each class, and why its requests were lost. */
function Deadlines({ classes }) {
  const rows = classes.map(({ level, caller, outcomes, causes }) => {
    const { in_time, late, hopeless, expired, queue_full } = outcomes;
    const all = in_time + late + hopeless + expired + queue_full;
    const why = Object.entries(causes).sort(([, a], [, b]) => b - a);
    return html`<tr>
      <th scope="row">${caller === "" ? "no caller" : caller} <span class="muted">level ${level}</span></th>
      <td class="number">${number(in_time)} <span class="muted">${percent(in_time / all)}</span></td>
      <td class="number">${number(late)}</td>
      <td class="number">${number(hopeless)}</td>
      <td class="number">${number(expired)}</td>
      <td class="number">${number(queue_full)}</td>
      <td>${why.map(([cause, count]) => html`<span title=${CAUSES[cause]}>${cause} ${number(count)}</span> `)}</td>
    </tr>`;
  });
  const titles = ["In time", "Late", "Refused", "Expired", "Queue full"];
  return html`<section class="card" aria-labelledby="deadlines-title">
    <h3 id="deadlines-title">Deadlines by class</h3>
    <div class="scroll">
      <table>
        <thead>
          <tr><th scope="col">Class</th>${titles.map((title) => html`<th scope="col" class="number">${title}</th>`)}<th scope="col">Why</th></tr>
        </thead>
        <tbody>${rows}</tbody>
      </table>
    </div>
  </section>`;
}

function Instances({ model, detail, onHeader }) {
  const { instances } = detail;
  const [count, setCount] = useState(undefined);
  const [{ busy, text }, run] = useOperation(onHeader);
  const wanted = count ?? instances.length;
  const path = `api/instances/${encodeURIComponent(model.name)}/${model.version}`;
  const change = (event) => {
    event.preventDefault();
    run(() => post(path, { count: Number(wanted) }), "changed");
  };
  return html`<section class="card">
    <h3>Instances</h3>
    <div class="scroll">
      <table>
        <thead>
          <tr><th scope="col">Name</th><th scope="col">Status</th><th scope="col" class="number">Restarts</th><th scope="col" class="number">Memory</th></tr>
        </thead>
        <tbody>
          ${instances.map(
            (one) => html`<tr>
              <th scope="row">${one.name} <span class="muted">${one.isolation ?? ""} ${one.kind}</span></th>
              <td class="status">${one.passive ? "passive" : one.healthy ? (one.busy ? "busy" : "idle") : (one.unhealthyReason ?? "down")}</td>
              <td class="number">${number(one.restarts)}</td>
              <td class="number">${bytes(one.memoryBytes)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${
      !model.isEnsemble &&
      model.state === "READY" &&
      html`<form class="row" onSubmit=${change}>
        <label>Instances
          <input type="number" min="1" max="1024" required value=${wanted} onInput=${(event) => setCount(event.target.value)} />
        </label>
        <button disabled=${busy}>Change</button>
        <span role="status">${text}</span>
      </form>`
    }
  </section>`;
}

function ConfigPanel({ model, onHeader }) {
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (!open || model.state !== "READY") return;
    send(`${modelPath(model)}/config`)
      .then((response) => response.json())
      .then((config) => setText(JSON.stringify(config, undefined, 2)))
      .catch((error) => {
        if (error.header !== undefined) onHeader(error);
        setText(error.message);
      });
  }, [open, model.state]);
  return html`<details class="card" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary><h3>Effective configuration of the model</h3></summary>
    <pre tabindex="0">${text}</pre>
  </details>`;
}
