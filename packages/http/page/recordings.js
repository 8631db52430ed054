import { send } from "./api.js";
import { clockTime, milliseconds, number } from "./format.js";
import { html, useMemo, useRef, useState } from "./preact.js";
import { Facts } from "./server-panels.js";
import { explainRequest, Tape, timelineOf } from "./time-travel.js";

/** Rows of a list, and batches of a timeline, that are drawn at most. */
const MOST_ROWS = 30;
const MOST_BATCHES = 500;
/** Batches of usual length that a lane has room for at first, about. */
const SEEN_AT_FIRST = 12;
const SPANS = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 60_000];

const nameOf = ({ id, number: index }) => (id === "" ? `#${index}` : `${id} (#${index})`);
const exact = (ms) => `${ms.toFixed(3)} ms`;

/** Recordings of the scheduling: a file of the viewer, or what the server has recorded. */
export function Recordings({ isRecording, onHeader }) {
  const [opened, setOpened] = useState(undefined);
  const [fault, setFault] = useState("");
  const open = async (name, read) => {
    setFault("");
    try {
      const timeline = timelineOf(Tape.from(new Uint8Array(await read()), name));
      setOpened({ name, timeline, key: Math.random() });
    } catch (error) {
      if (error.header !== undefined) onHeader(error);
      setFault(error.message);
    }
  };
  const ofServer = () =>
    open("the server's recording", async () => (await send("api/recording")).arrayBuffer());
  const ofFile = ({ currentTarget }) => {
    const [file] = currentTarget.files;
    if (file !== undefined) open(file.name, () => file.arrayBuffer());
    // The same file may be chosen again.
    currentTarget.value = "";
  };
  return html`<section class="card" aria-labelledby="recordings-title">
    <div class="row">
      <h2 id="recordings-title">Time travel</h2>
      ${isRecording && html`<button type="button" onClick=${ofServer}>${opened ? "Load the server's recording again" : "Load the server's recording"}</button>`}
      <label>Recording <input type="file" accept=".tape" onChange=${ofFile} /></label>
      ${opened !== undefined && html`<button type="button" onClick=${() => setOpened(undefined)}>Close</button>`}
      <span role="status" class="bad">${fault}</span>
    </div>
    ${
      opened === undefined
        ? html`<p class="muted">
            No recording is open. A recording shows which requests shared a batch, which waited for which, and why one
            was late.
            ${!isRecording && " This server records nothing: --scheduling-ring=60 keeps its last minute."}
          </p>`
        : html`<${Recording} key=${opened.key} ...${opened} />`
    }
  </section>`;
}

function Recording({ name, timeline }) {
  const { requests, batches, beganAt, durationMs } = timeline;
  const models = useMemo(() => modelsOf(timeline), [timeline]);
  const [model, setModel] = useState(models[0]?.key);
  const facts = [
    ["Recording", name],
    ["Began", clockTime(beganAt)],
    ["Length", milliseconds(durationMs)],
    ["Requests", number(requests.length)],
    ["Batches", number(batches.length)],
  ];
  return html`<${Facts} facts=${facts} />
    ${models.length === 0 && html`<p class="muted">No request came while the server recorded.</p>`}
    ${
      models.length > 1 &&
      html`<p><label>Model ${" "}
        <select value=${model} onChange=${({ currentTarget }) => setModel(currentTarget.value)}>
          ${models.map(({ key }) => html`<option value=${key}>${key}</option>`)}
        </select>
      </label></p>`
    }
    ${models.length > 0 && html`<${ModelTimeline} key=${model} timeline=${timeline} model=${models.find(({ key }) => key === model)} />`}`;
}

/** The models of a recording, each with its requests, batches, instances and events in order. */
function modelsOf({ requests, batches }) {
  const models = new Map();
  const modelOf = ({ model, version }) => {
    const key = `${model} ${version}`;
    let found = models.get(key);
    if (found === undefined) {
      found = { key, requests: [], batches: [], instances: new Set(), events: [] };
      models.set(key, found);
    }
    return found;
  };
  for (const request of requests) {
    const { requests: own, events } = modelOf(request);
    own.push(request);
    events.push({ at: request.arrivedMs, text: `request ${nameOf(request)} arrives` });
    if (request.batch !== null || request.endedMs === null) continue;
    events.push({
      at: request.endedMs,
      text: `request ${nameOf(request)} ends with ${request.outcome || "an answer"}`,
    });
  }
  for (const batch of batches) {
    const { batches: own, events, instances } = modelOf(batch);
    own.push(batch);
    instances.add(batch.instance);
    const what = `batch #${batch.number} of ${batch.rows} ${batch.rows === 1 ? "row" : "rows"}`;
    events.push({
      at: batch.startedMs,
      text: `${what} begins at ${batch.instance}, cut by ${batch.cut || "nothing"}`,
    });
    if (batch.endedMs !== null) events.push({ at: batch.endedMs, text: `${what} ends` });
  }
  for (const { events } of models.values()) events.sort((a, b) => a.at - b.at);
  return [...models.values()];
}

/** Index of the last event at or before a time. */
function lastEventAt(events, at) {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle].at <= at) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

function ModelTimeline({ timeline, model }) {
  const { events, batches } = model;
  const [step, setStep] = useState(0);
  const [span, setSpan] = useState(() => {
    const busyMs = batches.reduce(
      (sum, { startedMs, endedMs }) => sum + (endedMs ?? startedMs) - startedMs,
      0,
    );
    const wanted = (busyMs * SEEN_AT_FIRST) / Math.max(1, batches.length);
    return SPANS.find((one) => one >= wanted) ?? SPANS.at(-1);
  });
  const [asked, setAsked] = useState("");
  const { at, text } = events[step];
  const go = (to) => setStep(Math.max(0, Math.min(events.length - 1, to)));
  const goTo = (time) => go(lastEventAt(events, time));
  /** Shows a request at the moment at which it left the queue. */
  const explain = (request) => {
    setAsked(String(request.number));
    goTo(timeline.batches[request.batch]?.startedMs ?? request.endedMs ?? request.arrivedMs);
  };
  return html`<div class="row" role="group" aria-label="Steps">
      <button type="button" disabled=${step === 0} onClick=${() => go(step - 1)}>Step back</button>
      <button type="button" disabled=${step === events.length - 1} onClick=${() => go(step + 1)}>Step forward</button>
      <input class="grow" type="range" min="0" max=${events.length - 1} value=${step} aria-label="Moment"
        aria-valuetext=${`${exact(at)}: ${text}`} onInput=${({ currentTarget }) => go(Number(currentTarget.value))} />
      <label>Width
        <select value=${span} onChange=${({ currentTarget }) => setSpan(Number(currentTarget.value))}>
          ${SPANS.map((one) => html`<option value=${one}>${milliseconds(one)}</option>`)}
        </select>
      </label>
    </div>
    <p role="status" class="moment"><b>${exact(at)}</b> ${text}</p>
    <${Lanes} ...${{ model, at, span, goTo }} />
    <div class="panels">
      <${Waiting} ...${{ timeline, model, at, explain }} />
      <${Why} ...${{ timeline, model, asked, setAsked, explain }} />
    </div>`;
}

/** The batches around a moment: a lane for each instance. */
function Lanes({ model, at, span, goTo }) {
  const from = at - span / 2;
  const place = useRef(null);
  const seen = model.batches.filter(
    ({ startedMs, endedMs }) => startedMs <= from + span && (endedMs ?? Number.POSITIVE_INFINITY) >= from,
  );
  const share = (time) => 100 * Math.max(0, Math.min(1, (time - from) / span));
  const click = (event) => {
    const { left, width } = place.current.getBoundingClientRect();
    goTo(from + (span * (event.clientX - left)) / width);
  };
  const drawn = seen.slice(0, MOST_BATCHES);
  const label = `${seen.length} batches from ${exact(from)} to ${exact(from + span)}`;
  return html`<div class="lanes">
    <div>${[...model.instances].map((name) => html`<div class="lane name" title=${name}>${name}</div>`)}</div>
    <div class="tracks" ref=${place} role="img" aria-label=${label} onClick=${click}>
      ${[...model.instances].map(
        (name) => html`<div class="lane">
          ${drawn
            .filter(({ instance }) => instance === name)
            .map(({ number: index, rows, startedMs, endedMs, cut }) => {
              const left = share(startedMs);
              const width = share(endedMs ?? Number.POSITIVE_INFINITY) - left;
              const runs = startedMs <= at && (endedMs ?? Number.POSITIVE_INFINITY) > at;
              return html`<div key=${index} class=${runs ? "batch runs" : "batch"} title=${`batch #${index}: ${rows} rows, cut by ${cut || "nothing"}`}
                style=${{ left: `${left}%`, width: `${width}%` }}>#${index}</div>`;
            })}
        </div>`,
      )}
      <div class="now"></div>
    </div>
    ${seen.length > drawn.length && html`<p class="muted">${number(seen.length - drawn.length)} more batches: choose a smaller width.</p>`}
  </div>`;
}

/** The queue at a moment, in the order of arrival. */
function Waiting({ timeline, model, at, explain }) {
  const waiting = model.requests.filter((request) => {
    const left = timeline.batches[request.batch]?.startedMs ?? request.endedMs ?? Number.POSITIVE_INFINITY;
    return request.arrivedMs <= at && left > at;
  });
  return html`<section aria-label="Queue at this moment">
    <h3>Waiting at this moment: ${number(waiting.length)}</h3>
    ${waiting.length === 0 && html`<p class="muted">No request waits.</p>`}
    ${
      waiting.length > 0 &&
      html`<div class="scroll"><table>
        <thead>
          <tr><th scope="col">Request</th><th scope="col">Caller</th><th scope="col" class="number">Priority</th><th scope="col" class="number">Rows</th><th scope="col" class="number">Waits for</th><th scope="col" class="number">Due in</th></tr>
        </thead>
        <tbody>
          ${waiting.slice(0, MOST_ROWS).map(
            (request) => html`<tr key=${request.number}>
              <th scope="row"><${RequestLink} ...${{ request, explain }} /></th>
              <td>${request.caller || "–"}</td>
              <td class="number">${request.priority}</td>
              <td class="number">${request.rows}</td>
              <td class="number">${milliseconds(at - request.arrivedMs)}</td>
              <td class="number">${request.dueMs === null ? "–" : milliseconds(request.dueMs - at)}</td>
            </tr>`,
          )}
        </tbody>
      </table></div>`
    }
    ${waiting.length > MOST_ROWS && html`<p class="muted">and ${number(waiting.length - MOST_ROWS)} more.</p>`}
  </section>`;
}

function RequestLink({ request, explain }) {
  return html`<button type="button" class="link" onClick=${() => explain(request)}>${nameOf(request)}</button>`;
}

/** Milliseconds by which a request was late; for one without a limit, its whole time. */
const delayOf = ({ endedMs, dueMs, arrivedMs }) => (endedMs === null ? -1 : endedMs - (dueMs ?? arrivedMs));

/** Why one request was late. */
function Why({ timeline, model, asked, setAsked, explain }) {
  const [typed, setTyped] = useState("");
  const slowest = useMemo(
    () => [...model.requests].sort((a, b) => delayOf(b) - delayOf(a)).slice(0, 5),
    [model],
  );
  let found;
  let fault = "";
  if (asked !== "") {
    try {
      found = explainRequest(timeline, asked);
    } catch (error) {
      fault = error.message;
    }
  }
  const ask = (event) => {
    event.preventDefault();
    setAsked(typed.trim());
  };
  const list = (title, requests) =>
    requests.length > 0 &&
    html`<p>${title}: ${requests.slice(0, MOST_ROWS).map((request) => html`<${RequestLink} ...${{ request, explain }} />${" "}`)}
      ${requests.length > MOST_ROWS && `and ${number(requests.length - MOST_ROWS)} more`}</p>`;
  return html`<section aria-label="Why a request was late">
    <h3>Why was a request late?</h3>
    <form class="row" onSubmit=${ask}>
      <label>Request <input required placeholder="id or number" value=${typed} onInput=${({ currentTarget }) => setTyped(currentTarget.value)} /></label>
      <button>Explain</button>
      <span role="status" class="bad">${fault}</span>
    </form>
    ${list("Slowest requests", slowest)}
    ${
      found !== undefined &&
      html`<pre tabindex="0" aria-label="Explanation">${found.text}</pre>
        ${list("It waited for", found.before)}${list("It was overtaken by", found.overtookIt)}${list("It shared its batch with", found.sharedItsBatch)}`
    }
  </section>`;
}
