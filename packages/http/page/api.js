/*
 * The requests of the page. Restricted groups need a header, whose value is kept for as long as the tab is open.
 */

const STORED = "tritonjs-headers";

/** A request was refused because a header is missing or has the wrong value. */
export class HeaderNeeded extends Error {
  constructor(message, header) {
    super(message);
    this.header = header;
  }
}

function savedHeaders() {
  try {
    return JSON.parse(sessionStorage.getItem(STORED)) ?? {};
  } catch {
    return {};
  }
}

/** Keeps the value of a header for all further requests. */
export function saveHeader(name, value) {
  sessionStorage.setItem(STORED, JSON.stringify({ ...savedHeaders(), [name]: value }));
}

/** Sends a request below the page's path. Throws the server's error, or HeaderNeeded. */
export async function send(path, init = {}) {
  const response = await fetch(path, { ...init, headers: { ...init.headers, ...savedHeaders() } });
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  let header;
  try {
    ({ error: message, header } = JSON.parse(text));
  } catch {
    // A proxy may answer with text.
  }
  if (response.status === 403) header ??= /expecting header '([^']+)'/.exec(message)?.[1];
  if (header !== undefined) throw new HeaderNeeded(message, header);
  throw new Error(message || `the server answered with status ${response.status}`);
}

export const post = (path, value) =>
  send(path, {
    method: "POST",
    ...(value !== undefined && {
      headers: { "content-type": "application/json" },
      body: JSON.stringify(value),
    }),
  });

export const encode = encodeURIComponent;

/** Path of a version of a model in the v2 protocol. */
export const modelPath = ({ name, version }) => `v2/models/${name}/versions/${version}`;

/** Reads server-sent events: pairs of the event's name and the text of its data. */
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (waiting + value).split("\n\n");
      waiting = blocks.pop();
      for (const block of blocks) {
        const lines = block.split("\n");
        const find = (field) => lines.find((line) => line.startsWith(`${field}: `))?.slice(field.length + 2);
        yield { event: find("event") ?? "message", data: find("data") ?? "" };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

const FIRST_PAUSE_MS = 500;
const LAST_PAUSE_MS = 10_000;

/**
 * Watches the server until the signal aborts, and connects again when the connection breaks.
 *
 * @param model the version whose detail is wanted, or undefined
 * @param on receives each event: its name, and its data
 * @param onState receives "open", "lost" with the error, or "header" with the error
 */
export async function watch(model, on, onState, signal) {
  let pauseMs = FIRST_PAUSE_MS;
  const path = model === undefined ? "" : `/${encode(model.name)}/${encode(model.version)}`;
  while (!signal.aborted) {
    try {
      const response = await send(`api/events${path}`, { signal });
      onState("open");
      for await (const { event, data } of readEvents(response.body)) {
        pauseMs = FIRST_PAUSE_MS;
        if (signal.aborted) return;
        on(event, JSON.parse(data));
      }
      throw new Error("the server has ended the connection");
    } catch (error) {
      if (signal.aborted) return;
      onState(error instanceof HeaderNeeded ? "header" : "lost", error);
      if (error instanceof HeaderNeeded) return;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    pauseMs = Math.min(LAST_PAUSE_MS, pauseMs * 2);
  }
}
