import { saveHeader, send, watch } from "./api.js";
import { ExtensionPanel } from "./extension-panel.js";
import { ModelDetail } from "./model-detail.js";
import { keyOf, ModelList } from "./model-list.js";
import { html, useEffect, useRef, useState } from "./preact.js";
import { Recordings } from "./recordings.js";
import { ConfigurationPanel, LogPanel, ServerPanel } from "./server-panels.js";

const MOST_POINTS = 300;
const MOST_MESSAGES = 200;

/** The colour scheme, so that plots are drawn again when it changes. */
function useScheme() {
  const query = useRef(matchMedia("(prefers-color-scheme: dark)")).current;
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const listener = () => setDark(query.matches);
    query.addEventListener("change", listener);
    return () => query.removeEventListener("change", listener);
  }, []);
  return dark ? "dark" : "light";
}

/** The model that the address names: `#model=name&version=1`. */
function readAddress() {
  const found = new URLSearchParams(location.hash.slice(1));
  const name = found.get("model");
  return name === null ? undefined : { name, version: Number(found.get("version")) };
}

const isSame = (a, b) => a?.name === b?.name && a?.version === b?.version;

/** A summary with the rows of all models. Most summaries have only the rows that changed. */
function merged(before, data) {
  if (data.hasAll || before === undefined) return data;
  if (data.models.length === 0) return { ...data, models: before.models };
  const changed = new Map(data.models.map((row) => [keyOf(row), row]));
  return { ...data, models: before.models.map((row) => changed.get(keyOf(row)) ?? row) };
}

export function App() {
  const scheme = useScheme();
  const [info, setInfo] = useState(undefined);
  const [connection, setConnection] = useState({ state: "connecting" });
  const [attempt, setAttempt] = useState(0);
  const [wanted, setWanted] = useState(readAddress);
  const [summary, setSummary] = useState(undefined);
  const [detail, setDetail] = useState(undefined);
  const [log, setLog] = useState([]);
  const [history, setHistory] = useState({ columns: [], points: [] });

  // The first model is shown until the viewer chooses one.
  const first = summary?.models[0];
  const target = wanted ?? (first && { name: first.name, version: first.version });

  useEffect(() => {
    const listener = () => setWanted(readAddress());
    addEventListener("hashchange", listener);
    return () => removeEventListener("hashchange", listener);
  }, []);

  useEffect(() => {
    const gone = new AbortController();
    const on = (event, data) => {
      if (event === "history") setHistory(data);
      else if (event === "detail") {
        setDetail(data);
        if (data.point)
          setHistory(({ columns, points }) => ({
            columns,
            points:
              points.at(-1)?.[0] === data.point[0] ? points : [...points.slice(1 - MOST_POINTS), data.point],
          }));
      } else if (event === "log") {
        // A new connection sends the whole tail again.
        setLog((before) =>
          [...before.filter(({ number }) => number < data[0].number), ...data].slice(-MOST_MESSAGES),
        );
      } else if (event === "summary") setSummary((before) => merged(before, data));
    };
    watch(target, on, (state, error) => setConnection({ state, error }), gone.signal);
    return () => gone.abort();
  }, [target?.name, target?.version, attempt]);

  useEffect(() => {
    if (connection.state !== "open") return;
    send("api/info")
      .then((response) => response.json())
      .then(setInfo, () => {});
  }, [connection.state]);

  const choose = ({ name, version }) => {
    location.hash = new URLSearchParams({ model: name, version });
  };
  const onHeader = (error) => setConnection({ state: "header", error });
  const chosen = summary?.models.find((model) => target !== undefined && isSame(model, target));
  const retry = () => setAttempt((count) => count + 1);

  return html`<${Header} ...${{ info, summary, connection }} />
    <main>
      ${connection.state === "header" && html`<${HeaderForm} error=${connection.error} onSaved=${retry} />`}
      ${
        summary !== undefined &&
        html`<${ModelList} summary=${summary} columns=${history.columns} chosen=${chosen} onChoose=${choose} />
          ${
            chosen !== undefined &&
            html`<${ModelDetail}
              key=${keyOf(chosen)}
              model=${chosen}
              detail=${isSame(detail, chosen) ? detail : undefined}
              points=${history.points}
              columns=${history.columns}
              scheme=${scheme}
              control=${info?.modelControlMode}
              onHeader=${onHeader}
            />`
          }
          ${info?.pages.map(
            ({ name, hasView }) =>
              html`<${ExtensionPanel} key=${name} ...${{ name, hasView, data: summary[name], onHeader }} />`,
          )}
          ${info !== undefined && html`<${Recordings} isRecording=${info.isRecording} onHeader=${onHeader} />`}
          <${ServerPanel} summary=${summary} />
          <${LogPanel} log=${log} />
          ${info !== undefined && html`<${ConfigurationPanel} info=${info} />`}`
      }
    </main>`;
}

const CONNECTION = {
  connecting: "connecting",
  open: "live",
  lost: "connection lost",
  header: "needs access",
};

function Header({ info, summary, connection }) {
  return html`<header>
    <h1>${info?.server.name ?? "tritonjs"}</h1>
    <span class="muted">${info?.server.version ?? ""}</span>
    ${summary !== undefined && html`<span class=${`state ${summary.ready ? "ready" : "unavailable"}`}>${summary.ready ? "ready" : "not ready"}</span>`}
    <span class="grow"></span>
    <span role="status" class=${`connection ${connection.state}`} title=${connection.error?.message}>
      ${CONNECTION[connection.state]}
    </span>
  </header>`;
}

/** Asks for the value of a header that the server requires: the access token. */
function HeaderForm({ error, onSaved }) {
  const [value, setValue] = useState("");
  const save = (event) => {
    event.preventDefault();
    saveHeader(error.header, value);
    onSaved();
  };
  return html`<form class="card" onSubmit=${save}>
    <h2>Access token</h2>
    <p>The server asks for the header <code>${error.header}</code>. Its value is kept until the tab is closed.</p>
    <div class="row">
      <label class="grow">Value
        <input type="password" autocomplete="off" required value=${value} onInput=${(event) => setValue(event.target.value)} />
      </label>
      <button class="primary">Connect</button>
    </div>
  </form>`;
}
