import { once } from "node:events";
import { connect } from "node:net";
import { LEFT } from "../oracle/journal.mjs";
import { checkMultiples, row } from "./values.mjs";

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
