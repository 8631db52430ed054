import { once } from "node:events";
import { connect } from "node:net";
import { now } from "../clock.mjs";
import { LEFT, WrongAnswer } from "../oracle/journal.mjs";
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

/** One sequence of requests to a model that adds up. After a failed step its state is lost, so it ends there. */
export async function sumSequence({ client, model, random, journal, about }) {
  const id = random.between(1, 2 ** 47);
  const length = random.between(2, 8);
  const since = now();
  let sum = 0;
  for (let i = 0; i < length; i++) {
    const value = random.between(0, 1000);
    sum += value;
    const isRight = await journal.record({ ...about, since }, async () => {
      const result = await client.infer(model, {
        inputs: { x: { datatype: "FP32", shape: [1, 1], data: Float32Array.of(value) } },
        sequence: { id, start: i === 0, end: i === length - 1 },
      });
      checkEqual(result.elements("y", "FP32")[0], sum, "sum of the sequence");
    });
    if (!isRight) return;
  }
}

/* Clients that leave: before the answer, in the middle of sending, in the middle of receiving. */

/** Aborts an inference after a moment. The answer is checked if it comes before. */
export async function leaveBeforeAnswer({ client, model, random }) {
  const x = row(random, random.between(1, 5000));
  const leaver = new AbortController();
  const timer = setTimeout(() => leaver.abort(), random.between(0, 6));
  try {
    const inputs = { x: { datatype: "FP32", shape: [1, x.length], data: x } };
    const result = await client.infer(model, { inputs, signal: leaver.signal });
    checkMultiples(x, 2, result.elements("y", "FP32"), "output y");
  } catch (error) {
    if (error.name === "AbortError") return LEFT;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Sends a part of a body, and then resets the connection. */
export async function leaveWhileSending({ address, model, random }) {
  const [host, port] = address.split(":");
  const socket = connect(Number(port), host);
  socket.on("error", () => {});
  await once(socket, "connect");
  const size = random.between(10_000, 1_000_000);
  socket.write(
    `POST /v2/models/${model}/infer HTTP/1.1\r\nhost: chaos\r\ncontent-type: application/json\r\ncontent-length: ${size}\r\n\r\n`,
  );
  socket.write(Buffer.alloc(random.between(0, size - 1), 32));
  await new Promise((resolve) => setTimeout(resolve, random.between(0, 30)));
  socket.resetAndDestroy();
  return LEFT;
}

/** Sends a whole request, and resets the connection when the first bytes of its large answer have come. */
export async function leaveWhileReceiving({ address, model, random }) {
  const [host, port] = address.split(":");
  const x = row(random, 100_000);
  const json = JSON.stringify({
    inputs: [
      {
        name: "x",
        datatype: "FP32",
        shape: [1, x.length],
        parameters: { binary_data_size: x.byteLength },
      },
    ],
    outputs: [{ name: "y", parameters: { binary_data: true } }],
  });
  const socket = connect(Number(port), host);
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(
    `POST /v2/models/${model}/infer HTTP/1.1\r\nhost: chaos\r\ninference-header-content-length: ${json.length}\r\ncontent-length: ${json.length + x.byteLength}\r\n\r\n${json}`,
  );
  socket.write(Buffer.from(x.buffer));
  await Promise.race([once(socket, "data"), once(socket, "close")]).catch(() => {});
  socket.resetAndDestroy();
  return LEFT;
}

/** Leaves a stream after some of its responses. */
export async function leaveStream(responses, random) {
  let left = random.between(0, 5);
  for await (const { error } of responses) {
    if (error !== undefined) throw error;
    if (left-- <= 0) break;
  }
  return LEFT;
}
