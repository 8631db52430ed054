import { WrongAnswer } from "../oracle/journal.mjs";
import { checkEqual, checkMultiples, row } from "./values.mjs";

/** Most elements of a row in JSON, and in bytes. */
const JSON_ELEMENTS = 64;
const BINARY_ELEMENTS = 5000;

/** One inference of a model that multiplies its input, over either protocol. */
export async function infer({ client, model, random, binary, factor = () => 2 }) {
  const rows = random.between(1, 4);
  const x = row(random, rows * random.between(1, binary === false ? JSON_ELEMENTS : BINARY_ELEMENTS));
  const id = String(random.between(1, 2 ** 40));
  const inputs = { x: { datatype: "FP32", shape: [rows, x.length / rows], data: x } };
  const result = await client.infer(model, { inputs, id, ...(binary === undefined ? {} : { binary }) });
  checkEqual(result.id, id, "id of the answer");
  checkEqual(result.modelName, model, "model of the answer");
  checkMultiples(x, factor(result), result.elements("y", "FP32"), "output y");
}

/** One text, and its words as server-sent events over HTTP. */
export async function generateWords({ client, model, random }) {
  const words = Array.from({ length: random.between(1, 12) }, () => `w${random.between(0, 999_999)}`);
  let next = 0;
  for await (const { word } of client.generateStream(model, { text: words.join(" ") }))
    checkEqual(word, words[next++], "word");
  checkEqual(next, words.length, "number of words");
}

/** One request of a decoupled model that counts, on a stream of its own over gRPC. */
export async function countOnStream({ client, model, random }) {
  const limit = random.between(0, 20);
  const request = {
    modelName: model,
    id: String(random.between(1, 2 ** 40)),
    inputs: { x: { datatype: "INT32", shape: [1], data: Int32Array.of(limit) } },
    enableEmptyFinalResponse: true,
  };
  let next = 0;
  let ends = 0;
  for await (const { id, result, error, final } of client.streamInfer([request])) {
    if (error !== undefined) throw error;
    checkEqual(id, request.id, "id of the response");
    checkEqual(ends, 0, "responses after the last one");
    if (result.tensors.size > 0) checkEqual(result.elements("y", "INT32")[0], next++, "response");
    if (final) ends++;
  }
  checkEqual(next, limit, "number of responses");
  checkEqual(ends, 1, "number of last responses");
}

/**
 * Several inferences on one stream over gRPC, each recorded on its own. All of them are answered, in any order.
 */
export async function inferOnStream({ client, model, random, journal, about }) {
  const inputs = new Map();
  const settle = new Map();
  const requests = Array.from({ length: random.between(1, 6) }, (_, i) => {
    const x = row(random, random.between(1, 1000));
    inputs.set(String(i), x);
    return {
      modelName: model,
      id: String(i),
      inputs: { x: { datatype: "FP32", shape: [1, x.length], data: x } },
    };
  });
  const recorded = requests.map(({ id }) =>
    journal.record(about, () => new Promise((resolve, reject) => settle.set(id, { resolve, reject }))),
  );
  try {
    for await (const { id, result, error } of client.streamInfer(requests)) {
      const { resolve, reject } = settle.get(id) ?? {};
      if (resolve === undefined)
        throw new WrongAnswer(`stream: expected the id of an open request, got '${id}'`);
      settle.delete(id);
      if (error !== undefined) reject(error);
      else {
        try {
          checkMultiples(inputs.get(id), 2, result.elements("y", "FP32"), "output y");
          resolve();
        } catch (wrong) {
          reject(wrong);
        }
      }
    }
    for (const { reject } of settle.values()) reject(new WrongAnswer("stream: it ended without an answer"));
  } catch (error) {
    for (const { reject } of settle.values()) reject(error);
    if (settle.size === 0)
      journal.faults.push(`stream to '${model}' failed after its answers: ${error.message}`);
  }
  await Promise.all(recorded);
}
