import { connect } from "node:net";

/** Opens a connection, writes `text` and resolves with what the server sends until it contains `until`. */
export function sendRaw(port: number, text: string | Uint8Array, until: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect(port, "localhost", () => socket.write(text));
    socket.setEncoding("utf8");
    socket.on("data", (part: string) => {
      received += part;
      if (!received.includes(until)) return;
      socket.destroy();
      resolve(received);
    });
    socket.on("end", () => reject(new Error(`ended without '${until}': ${received}`)));
    socket.on("error", reject);
  });
}

/** Opens a connection, writes `text` and resolves with all that the server sends before it closes. */
export function sendRawToEnd(port: number, text: string | Uint8Array): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = "";
    const socket = connect(port, "localhost", () => socket.write(text));
    socket.setEncoding("utf8");
    socket.on("data", (part: string) => {
      received += part;
    });
    socket.on("close", () => resolve(received));
    socket.on("error", reject);
  });
}
