/* A server of node:http2 alone. It reads the message of a call into one buffer and answers the same bytes. */
import { createServer } from "node:http2";
import { answerCalls } from "../support/program.mjs";

/** As the gRPC frontend has them. */
const WINDOW_SIZE = 8 * 1024 * 1024;
const settings = { initialWindowSize: WINDOW_SIZE, maxFrameSize: 1024 * 1024, maxConcurrentStreams: 1024 };

const server = createServer({ settings });
server.on("session", (session) => session.setLocalWindowSize(WINDOW_SIZE));
server.on("stream", (stream) => {
  // A load generator that stops resets its connections.
  stream.on("error", () => {});
  const chunks = [];
  stream.on("data", (chunk) => chunks.push(chunk));
  stream.on("end", () => {
    if (stream.destroyed) return;
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": 0 }));
    const headers = { ":status": 200, "content-type": "application/grpc+proto" };
    stream.respond(headers, { waitForTrailers: true, sendDate: false });
    stream.end(Buffer.concat(chunks));
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

answerCalls({ url: () => `127.0.0.1:${server.address().port}` });
