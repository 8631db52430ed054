/*
 * The models of the chaos run. All of them compute something that the client can check to the last byte. `crash` as the
 * first element of an input makes a model end its own thread or process with exit code 70.
 */

import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { onnxModel } from "../../examples/onnx-writer/dist/onnx-writer.js";

/** First element of an input that ends the worker which computes it. */
export const CRASH = -70;
/** Exit code of such a worker. */
export const CRASH_CODE = 70;
/** First element of an input that makes the worker exceed its heap. */
export const EXHAUST = -71;

const FLOATS = (size) =>
  `input [ { name: "x" data_type: TYPE_FP32 dims: [ ${size} ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ ${size} ] } ]`;

const parameters = (values) =>
  Object.entries(values)
    .map(([key, value]) => `parameters { key: "${key}" value { string_value: "${value}" } }`)
    .join("\n");

const inProcess = parameters({ isolation: "process" });

/** Doubles its input, after a pause in which requests are in flight. */
export const DOUBLE = `
export default class Double {
  async execute(requests) {
    await new Promise((resolve) => setTimeout(resolve, 3));
    return requests.map(({ inputs: { x } }) => {
      if (x.data[0] === ${CRASH}) process.exit(${CRASH_CODE});
      if (x.data[0] === ${EXHAUST}) for (const kept = []; ; ) kept.push(new Array(1000).fill(x.data[0]));
      return { y: x.data.map((value) => 2 * value) };
    });
  }
}`;

/** Adds up the inputs of each sequence. */
export const SUM = `
const sums = new Map();
export default class Sum {
  async execute(requests) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    return requests.map(({ inputs: { x }, sequenceStart, sequenceEnd, correlationId }) => {
      const sum = (sequenceStart ? 0 : sums.get(correlationId)) + x.data[0];
      if (sequenceEnd) sums.delete(correlationId);
      else sums.set(correlationId, sum);
      return { y: [[sum]] };
    });
  }
}`;

/** Answers with the words of its input, one response for each. */
const WORDS = `
export default class Words {
  async *execute([{ inputs: { text } }]) {
    for (const word of Buffer.from(text.data[0]).toString().split(" ")) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      yield [{ word: [word] }];
    }
  }
}`;

const PYTHON_DOUBLE = `
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        def answer(request):
            x = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()
            return pb_utils.InferenceResponse([pb_utils.Tensor("y", x * 2)])

        return [answer(request) for request in requests]
`;

/** Answers with the numbers below its input, one response for each. */
const PYTHON_COUNT = `
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            limit = pb_utils.get_input_tensor_by_name(request, "x").as_numpy()[0]
            for i in range(int(limit)):
                if request.is_cancelled():
                    break
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([i], dtype=np.int32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return None
`;

/** Twice its input, as an ONNX graph of any number of rows. */
const ONNX_DOUBLE = onnxModel({
  name: "double",
  opset: 17,
  inputs: [{ name: "x", elemType: "FLOAT", dims: ["batch", "size"] }],
  outputs: [{ name: "y", elemType: "FLOAT", dims: ["batch", "size"] }],
  nodes: [{ op: "Add", inputs: ["x", "x"], outputs: ["y"] }],
});

/** The longest batch of the models that batch. */
export const MAX_BATCH = 8;

const BATCHED = `max_batch_size: ${MAX_BATCH}
dynamic_batching { }
${FLOATS(-1)}`;

/** Each sequence of the run may pause for this long, so only a fault ends it. */
const PATIENT = "max_sequence_idle_microseconds: 600000000";

/** Files of the polled repository. Two doubling models in a row multiply by four. */
export function servedFiles({ python }) {
  const files = {
    "js_thread/config.pbtxt": `backend: "javascript"\n${BATCHED}\ninstance_group { count: 2 kind: KIND_CPU }`,
    "js_thread/1/model.js": DOUBLE,
    "js_process/config.pbtxt": `backend: "javascript"\n${BATCHED}\n${inProcess}\ninstance_group { count: 2 kind: KIND_CPU }`,
    "js_process/1/model.js": DOUBLE,
    "js_limited/config.pbtxt": `backend: "javascript"\n${BATCHED}\n${parameters({ heap_limit_mb: 24 })}`,
    "js_limited/1/model.js": DOUBLE,
    "onnx_thread/config.pbtxt": `backend: "onnxruntime"\n${BATCHED}`,
    "onnx_thread/1/model.onnx": ONNX_DOUBLE,
    "onnx_process/config.pbtxt": `backend: "onnxruntime"\n${BATCHED}\n${inProcess}`,
    "onnx_process/1/model.onnx": ONNX_DOUBLE,
    "sum/config.pbtxt": `backend: "javascript"
max_batch_size: ${MAX_BATCH}
sequence_batching { ${PATIENT} oldest { max_candidate_sequences: 16 } }
${FLOATS(1)}
${inProcess}`,
    "sum/1/model.js": SUM,
    "words/config.pbtxt": `backend: "javascript"
max_batch_size: 0
model_transaction_policy { decoupled: true }
input [ { name: "text" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "word" data_type: TYPE_STRING dims: [ 1 ] } ]`,
    "words/1/model.js": WORDS,
    "chain/config.pbtxt": ensemble("js_process", python ? "python_double" : "onnx_process"),
    "chain/1/": "",
    ...changingFiles(1),
  };
  if (!python) return files;
  return {
    ...files,
    "python_double/config.pbtxt": `backend: "python"\n${BATCHED}\ninstance_group { count: 2 kind: KIND_CPU }`,
    "python_double/1/model.py": PYTHON_DOUBLE,
    "python_count/config.pbtxt": `backend: "python"
max_batch_size: 0
model_transaction_policy { decoupled: true }
input [ { name: "x" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_INT32 dims: [ 1 ] } ]`,
    "python_count/1/model.py": PYTHON_COUNT,
  };
}

function ensemble(...members) {
  const steps = members.map((name, i) => {
    const from = i === 0 ? "x" : `t${i}`;
    const to = i === members.length - 1 ? "y" : `t${i + 1}`;
    return `{ model_name: "${name}" model_version: -1
      input_map { key: "x" value: "${from}" } output_map { key: "y" value: "${to}" } }`;
  });
  return `platform: "ensemble"
max_batch_size: ${MAX_BATCH}
${FLOATS(-1)}
ensemble_scheduling { step [ ${steps.join(", ")} ] }`;
}

/** Name of the model whose files change while it is polled. */
export const CHANGING = "changing";

/** The configuration of the changing model. Its versions multiply by their number plus one. */
export const CHANGING_CONFIG = `backend: "javascript"\n${BATCHED}`;

/** Code of one version of the changing model. The comment makes a file long enough to be cut in half. */
export function changingCode(version) {
  return `
// ${"A version of the model that changes while it is polled. ".repeat(200)}
export default class Changing {
  execute(requests) {
    return requests.map(({ inputs: { x } }) => ({ y: x.data.map((value) => ${version + 1} * value) }));
  }
}`;
}

/** Files of the changing model with one version. */
export function changingFiles(version) {
  return {
    [`${CHANGING}/config.pbtxt`]: CHANGING_CONFIG,
    [`${CHANGING}/${version}/model.js`]: changingCode(version),
  };
}

/** Files of the repository whose models are loaded and unloaded by requests. */
export function controlledFiles() {
  return {
    "loaded_js/config.pbtxt": `backend: "javascript"\n${BATCHED}`,
    "loaded_js/1/model.js": DOUBLE,
    "loaded_onnx/config.pbtxt": `backend: "onnxruntime"\n${BATCHED}`,
    "loaded_onnx/1/model.onnx": ONNX_DOUBLE,
  };
}

/** Writes files by path, each at once: a poll sees the old content or the new one. `a/` is an empty directory. */
export function writeFiles(folder, files) {
  for (const [name, content] of Object.entries(files)) {
    const path = join(folder, name);
    mkdirSync(name.endsWith("/") ? path : dirname(path), { recursive: true });
    if (name.endsWith("/")) continue;
    writeFileSync(`${path}.new`, content);
    renameSync(`${path}.new`, path);
  }
}
