import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { answerClientError } from "../src/server/node-connections.js";

it("the server closes the connection of a client that stays after a parse error", async () => {
  const server = createServer();
  onTestFinished(() => void server.close());
  server.on("clientError", (error, socket) => answerClientError(error, socket as Socket, false));
  server.listen(0);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = connect({ port, host: "localhost", allowHalfOpen: true }, () =>
    client.write("GARBAGE\r\n\r\n"),
  );
  onTestFinished(() => void client.destroy());
  client.resume();
  const [socket] = (await once(server, "connection")) as [Socket];
  await Promise.all([once(client, "end"), once(socket, "close")]);
  expect(client.writable).toBe(true);
});
