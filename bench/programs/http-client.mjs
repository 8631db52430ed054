/* A client over bare sockets. It writes the same bytes repeatedly, and counts answers by their length. */
import { connect } from "node:net";
import { percentile } from "../support/pairs.mjs";
import { answerCalls } from "../support/program.mjs";

async function run({ url, headers, body, connections, seconds }) {
  const { hostname, port, pathname } = new URL(url);
  const bytes = Buffer.from(body, "base64");
  const lines = Object.entries({ ...headers, host: hostname, "content-length": bytes.length });
  const head = `POST ${pathname} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  const request = Buffer.concat([Buffer.from(head), bytes]);
  const tally = { answers: 0, errors: 0, latencies: [] };
  const start = performance.now();
  const end = start + seconds * 1000;
  await Promise.all(
    Array.from({ length: connections }, () => ask(connect(port, hostname), request, end, tally)),
  );
  const ran = (performance.now() - start) / 1000;
  const { answers, errors, latencies } = tally;
  const [p50Ms, p99Ms] = [percentile(latencies, 50), percentile(latencies, 99)];
  return { rate: answers / ran, errorRate: errors / ran, p50Ms, p99Ms, errors };
}

function ask(socket, request, end, tally) {
  return new Promise((resolve, reject) => {
    let pending = Buffer.alloc(0);
    let missing = 0;
    let sent = 0;
    const send = () => {
      if (performance.now() > end) {
        socket.end();
        resolve();
        return;
      }
      sent = performance.now();
      socket.write(request);
    };
    const answered = () => {
      tally.answers++;
      tally.latencies.push(performance.now() - sent);
      send();
    };
    socket.setNoDelay(true).once("connect", send).once("error", reject);
    socket.on("data", (chunk) => {
      if (missing > 0) {
        missing -= chunk.length;
        if (missing <= 0) answered();
        return;
      }
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      const headEnd = pending.indexOf("\r\n\r\n");
      if (headEnd < 0) return;
      const head = pending.toString("latin1", 0, headEnd);
      if (!head.startsWith("HTTP/1.1 200")) tally.errors++;
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)[1]);
      missing = length - (pending.length - headEnd - 4);
      pending = Buffer.alloc(0);
      if (missing <= 0) answered();
    });
  });
}

answerCalls({ run });
