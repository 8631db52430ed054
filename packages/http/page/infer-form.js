import { modelPath, readEvents, send } from "./api.js";
import { milliseconds } from "./format.js";
import { imageLayout, imageValues, SCALES } from "./image-input.js";
import {
  elementBytes,
  inferRequest,
  isFloat,
  mustBeBytes,
  numberBytes,
  readAnswer,
  readNumbers,
} from "./infer-request.js";
import { html, useEffect, useRef, useState } from "./preact.js";

/** Values that an output shows at most. */
const MOST_VALUES = 200;

/** Answers of a stream that are shown at most. */
const MOST_ANSWERS = 200;

/** Zeros that a field is filled with at most. */
const MOST_ZEROS = 64;

const size = (shape) => shape.reduce((product, dim) => product * dim, 1);

/** What a field begins with: shape 1 for open dimensions, and zeros. */
function firstValue({ name, datatype, shape: declared }) {
  const shape = declared.map((dim) => (dim < 0 ? 1 : dim));
  const count = size(shape);
  const source = count > MOST_ZEROS ? "zeros" : "values";
  const text = datatype === "BYTES" || count > MOST_ZEROS ? "" : new Array(count).fill("0").join(", ");
  return { name, datatype, shape: shape.join(", "), source, text, file: undefined, scale: "0 to 1" };
}

function readShape(text) {
  const words = text.split(/[\s,]+/).filter((word) => word !== "");
  if (!words.every((word) => /^\d+$/.test(word)))
    throw new Error(`expected numbers for a shape, got "${text}"`);
  return words.map(Number);
}

/** Turns a field into an input of a request. */
async function inputOf({ name, datatype, shape: shapeText, source, text, file, scale }) {
  let shape = readShape(shapeText);
  const input = (more) => ({ name, datatype, shape, ...more });
  if (source === "file") {
    if (file === undefined) throw new Error(`choose a file for input '${name}'`);
    if (datatype === "BYTES")
      return input({ bytes: elementBytes([new Uint8Array(await file.arrayBuffer())]) });
    const layout = imageLayout(shape);
    if (layout === undefined) {
      throw new Error(
        `an image needs a shape such as [3, 224, 224] or [224, 224, 3], got [${shape.join(", ")}]`,
      );
    }
    const image = await imageValues(file, layout);
    shape = [...shape.slice(0, -3), ...image.shape];
    const values = isFloat(datatype) ? image.values.map(SCALES[scale]) : image.values;
    return input({ bytes: numberBytes(values, datatype) });
  }
  if (datatype === "BYTES") {
    const count = size(shape);
    const elements = count === 1 ? [text] : text.split("\n");
    return input({ words: elements.map((one) => JSON.stringify(one)) });
  }
  if (source !== "values") {
    const values = Array.from({ length: size(shape) }, () => (source === "random" ? Math.random() : 0));
    return input({ bytes: numberBytes(values, datatype) });
  }
  const words = readNumbers(text, datatype);
  if (mustBeBytes(datatype)) return input({ bytes: numberBytes(words, datatype) });
  return input({ words });
}

/** A form that makes a request for a model from its metadata, and shows the answer. */
export function InferForm({ model, onHeader }) {
  const [metadata, setMetadata] = useState(undefined);
  const [streams, setStreams] = useState(false);
  const [fields, setFields] = useState([]);
  const [result, setResult] = useState({ answers: [], status: "" });
  const running = useRef(undefined);
  const failed = (error) => {
    if (error.header !== undefined) onHeader(error);
    setResult((previous) => ({ ...previous, busy: false, error: error.message }));
  };
  useEffect(() => {
    Promise.all([
      send(modelPath(model)).then((response) => response.json()),
      send(`${modelPath(model)}/config`).then((response) => response.json()),
    ]).then(([found, config]) => {
      setMetadata(found);
      setStreams(config.model_transaction_policy?.decoupled === true);
      setFields(found.inputs.map(firstValue));
    }, failed);
    return () => running.current?.abort();
  }, []);
  const change = (name, changes) =>
    setFields((before) => before.map((field) => (field.name === name ? { ...field, ...changes } : field)));
  const submit = async (event) => {
    event.preventDefault();
    running.current?.abort();
    running.current = new AbortController();
    const { signal } = running.current;
    const began = performance.now();
    setResult({ answers: [], busy: true, status: "running" });
    const show = (answer) =>
      setResult(({ answers }) => ({
        answers: [...answers, answer].slice(-MOST_ANSWERS),
        busy: streams,
        status: `${milliseconds(performance.now() - began)}`,
      }));
    try {
      if (streams) await sendStream(model, fields, show, signal);
      else {
        const inputs = await Promise.all(fields.map(inputOf));
        const request = inferRequest(inputs, metadata.outputs, `dashboard-${Date.now()}`);
        show(await readAnswer(await send(`${modelPath(model)}/infer`, { ...request, signal })));
      }
      setResult((previous) => ({ ...previous, busy: false }));
    } catch (error) {
      if (signal.aborted) setResult((previous) => ({ ...previous, busy: false, status: "cancelled" }));
      else failed(error);
    }
  };
  if (metadata === undefined)
    return html`<section class="card"><h3>Try it</h3><p>${result.error}</p></section>`;
  return html`<section class="card" aria-labelledby="infer-title">
    <h3 id="infer-title">Try it</h3>
    <form onSubmit=${submit} class="infer">
      ${fields.map((field) => html`<${Field} key=${field.name} field=${field} onChange=${(changes) => change(field.name, changes)} />`)}
      <div class="row">
        <button class="primary" disabled=${result.busy && !streams}>Infer</button>
        ${result.busy && html`<button type="button" onClick=${() => running.current?.abort()}>Cancel</button>`}
        <span role="status">${result.error === undefined ? result.status : ""}</span>
      </div>
    </form>
    ${result.error !== undefined && html`<p role="alert" class="bad text">${result.error}</p>`}
    <div class="answers" aria-live="polite">
      ${result.answers.map((answer, i) => html`<${Answer} key=${i} answer=${answer} />`)}
    </div>
  </section>`;
}

/** Decoupled models answer over `generate_stream`, whose values are flat. */
async function sendStream(model, fields, show, signal) {
  const members = await Promise.all(
    fields.map(async (field) => {
      const { name, datatype, words, bytes } = await inputOf(field);
      if (words !== undefined) return `${JSON.stringify(name)}:[${words.join(",")}]`;
      if (bytes !== undefined && field.source !== "file" && !mustBeBytes(datatype)) {
        const values = new Array(size(readShape(field.shape))).fill(0);
        return `${JSON.stringify(name)}:[${values.map(() => (field.source === "random" ? Math.random() : 0)).join(",")}]`;
      }
      throw new Error(`input '${name}': a streaming request can have typed values only`);
    }),
  );
  const body = `{${members.join(",")}}`;
  const response = await send(`${modelPath(model)}/generate_stream`, { method: "POST", body, signal });
  for await (const { data } of readEvents(response.body)) {
    const { model_name: _, model_version: __, error, ...outputs } = JSON.parse(data);
    if (error !== undefined) throw new Error(error);
    show({
      outputs: Object.entries(outputs).map(([name, value]) => ({ name, datatype: "", data: [value].flat() })),
    });
  }
}

function Field({ field, onChange }) {
  const { name, datatype, shape, source, text, scale } = field;
  const isText = datatype === "BYTES";
  const isImage = !isText && imageLayout(shape.split(/[\s,]+/).map(Number)) !== undefined;
  const sources = [
    ["values", isText ? "text" : "values"],
    ...(isText
      ? []
      : [
          ["zeros", "zeros"],
          ["random", "random numbers"],
        ]),
    ...(isText || isImage ? [["file", isText ? "file" : "image file"]] : []),
  ];
  const set = (key) => (event) => onChange({ [key]: event.target.value });
  return html`<fieldset>
    <legend>${name} <span class="muted">${datatype}</span></legend>
    <div class="row">
      <label>Shape <input value=${shape} onInput=${set("shape")} size="12" spellcheck=${false} /></label>
      <label>From
        <select value=${source} onChange=${set("source")}>
          ${sources.map(([value, title]) => html`<option value=${value}>${title}</option>`)}
        </select>
      </label>
      ${
        source === "file" &&
        html`<label>File
          <input type="file" accept=${isText ? undefined : "image/*"} onChange=${(event) => onChange({ file: event.target.files[0] })} />
        </label>`
      }
      ${
        source === "file" &&
        isFloat(datatype) &&
        html`<label>Range
          <select value=${scale} onChange=${set("scale")}>
            ${Object.keys(SCALES).map((value) => html`<option value=${value}>${value}</option>`)}
          </select>
        </label>`
      }
    </div>
    ${
      source === "values" &&
      html`<label>${isText ? "Text (for several elements, one a line)" : "Values"}
        <textarea rows="2" value=${text} onInput=${set("text")} spellcheck=${false}></textarea>
      </label>`
    }
  </fieldset>`;
}

function Answer({ answer }) {
  return html`<dl class="answer">
    ${answer.outputs.map(({ name, datatype, shape, data }) => {
      const rest = data.length - MOST_VALUES;
      const values = data.slice(0, MOST_VALUES).map(String);
      return html`<div>
        <dt>${name} <span class="muted">${datatype} ${shape === undefined ? "" : `[${shape.join(", ")}]`}</span></dt>
        <dd class="text">${values.join(", ")}${rest > 0 && ` … ${rest} more`}</dd>
      </div>`;
    })}
  </dl>`;
}
