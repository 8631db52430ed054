/* A client over node:http2. It sends the same bytes with each call and counts only successful calls. */
import { connect } from "node:http2";
import { answerCalls } from "../support/program.mjs";

const LARGE_WINDOW = 2 ** 30;

/** @returns calls a second, and the last answer as base64 */
async function run({ url, method, body, connections, streams, seconds }) {
  const bytes = Buffer.from(body, "base64");
  const headers = {
    ":method": "POST",
    ":path": `/inference.GRPCInferenceService/${method}`,
    "content-type": "application/grpc",
    te: "trailers",
  };
  const tally = { calls: 0, errors: 0, last: undefined };
  const start = performance.now();
  const end = start + seconds * 1000;
  const sessions = Array.from({ length: connections }, () => {
    const session = connect(`http://${url}`, { settings: { initialWindowSize: LARGE_WINDOW } });
    session.once("connect", () => session.setLocalWindowSize(LARGE_WINDOW));
    return session;
  });
  const client = async (session) => {
    do await ask(session, headers, bytes, tally);
    while (performance.now() < end);
  };
  await Promise.all(sessions.flatMap((session) => Array.from({ length: streams }, () => client(session))));
  const rate = (tally.calls * 1000) / (performance.now() - start);
  for (const session of sessions) session.destroy();
  return { rate, errors: tally.errors, answer: tally.last?.toString("base64") };
}

function ask(session, headers, bytes, tally) {
  return new Promise((resolve, reject) => {
    const call = session.request(headers);
    const chunks = [];
    let status = "none";
    call.on("response", (head) => (status = head["grpc-status"] ?? status));
    call.on("trailers", (trailers) => (status = trailers["grpc-status"]));
    call.on("data", (chunk) => chunks.push(chunk));
    call.on("error", reject);
    call.on("end", () => {
      tally.calls++;
      if (status !== "0") tally.errors++;
      tally.last = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
      resolve();
    });
    call.end(bytes);
  });
}

answerCalls({ run });
