import { once } from "node:events";
import { connect as connectHttp2, createServer, type ServerHttp2Session } from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { CONNECTION_DEFAULTS, Connection } from "../../../src/transport/connection.js";

/** A server that answers each stream with this many bytes, and the session and the socket of its only connection. */
async function openServer(answerBytes: number) {
  const server = createServer();
  onTestFinished(() => void server.close());
  const sockets: Socket[] = [];
  const sessions: ServerHttp2Session[] = [];
  server.prependListener("connection", (socket: Socket) => sockets.push(socket));
  server.on("session", (session) => {
    new Connection(session, sockets.at(-1)!, CONNECTION_DEFAULTS);
    sessions.push(session);
  });
  server.on("stream", (stream) => {
    stream.on("error", () => {});
    stream.respond({ ":status": 200 });
    stream.end(Buffer.alloc(answerBytes));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, sockets, sessions };
}

const immediate = () => new Promise((resolve) => setImmediate(resolve));

it("a session that cannot send ends with its connection in the same turn", async () => {
  const { port, sockets, sessions } = await openServer(64 * 1024 * 1024);
  const raw = connect(port, "127.0.0.1");
  const settings = { initialWindowSize: 2 ** 30 };
  const client = connectHttp2(`http://127.0.0.1:${port}`, { createConnection: () => raw, settings });
  onTestFinished(() => client.destroy());
  client.on("error", () => {});
  await once(client, "remoteSettings");
  client.setLocalWindowSize(2 ** 30);
  const stream = client.request({ ":path": "/" });
  stream.on("error", () => {});
  await once(stream, "response");
  // The client's process reads on only after this test: its window is open, and the system's buffers fill up.
  stream.pause();
  raw.pause();
  const [session, socket] = [sessions[0]!, sockets[0]!];
  const queued = () => {
    const size = session.state.outboundQueueSize ?? 0;
    if (size === 0) session.ping(() => {});
    return size;
  };
  // A ping stays in the queue when nothing can be sent any more.
  await expect.poll(queued).toBeGreaterThan(0);
  expect(socket.destroyed).toBe(false);
  session.destroy();
  await immediate();
  expect(socket.destroyed).toBe(true);
});

it("a session that has sent everything ends its connection after the client has got it", async () => {
  const { port, sockets, sessions } = await openServer(10);
  const client = connectHttp2(`http://127.0.0.1:${port}`);
  onTestFinished(() => client.destroy());
  const stream = client.request({ ":path": "/" });
  stream.resume();
  await once(stream, "end");
  await expect.poll(() => sessions[0]!.state.outboundQueueSize).toBe(0);
  sessions[0]!.destroy();
  await immediate();
  expect(sockets[0]!.destroyed).toBe(false);
  await once(client, "close");
});
