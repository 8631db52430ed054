import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProgram } from "../program.mjs";
import { isInstalled, outputOf } from "./tools.mjs";

/*
 * Calls one gRPC method from another process. Uses `h2load` if it is installed, else a client of our own over
 * node:http2.
 */

/** Name of the tool that makes the calls. */
export const grpcLoadTool = () => (isInstalled("h2load") ? "h2load" : "bench/programs/grpc-client.mjs");

/**
 * @param call `{ url, method, messages }`: each call sends these messages and gets an answer to each
 * @returns calls a second
 */
export async function grpcLoad(call, { connections, streams }, seconds) {
  const body = Buffer.concat(call.messages.map(framed));
  const load = isInstalled("h2load") ? withH2load : withOwnClient;
  const result = await load({ ...call, body }, { connections, streams }, seconds);
  if (result.errors > 0 || !(result.rate > 0)) throw new Error(`the load failed: ${JSON.stringify(result)}`);
  return result;
}

/** A message in gRPC's framing: a byte for "not compressed", its length, and the message. */
export function framed(message) {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

async function withH2load({ url, method, body }, { connections, streams }, seconds) {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-bench-"));
  try {
    const file = join(folder, "body");
    writeFileSync(file, body);
    const output = await outputOf("h2load", [
      ...["-c", String(connections), "-m", String(streams), "-D", String(Math.max(1, Math.round(seconds)))],
      ...["-d", file, "-H", "content-type: application/grpc", "-H", "te: trailers"],
      `http://${url}/inference.GRPCInferenceService/${method}`,
    ]);
    const number = (pattern) => Number(pattern.exec(output)?.[1] ?? Number.NaN);
    return {
      rate: number(/finished in .*?, ([\d.]+) req\/s/),
      errors:
        number(/(\d+) errored/) + number(/(\d+) timeout/) + number(/, (\d+) 4xx/) + number(/, (\d+) 5xx/),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function withOwnClient({ url, method, body }, { connections, streams }, seconds) {
  const client = await startProgram("grpc-client");
  try {
    const text = body.toString("base64");
    return await client.call("run", { url, method, body: text, connections, streams, seconds });
  } finally {
    await client.stop();
  }
}
