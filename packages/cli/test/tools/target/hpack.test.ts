import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { headerBlocks } from "../../../src/target/http2-frames.js";
import { Http2Session } from "../../../src/target/http2-session.js";

describe("headers of the HTTP/2 client", () => {
  it("arrive as sent, and answers are decoded, whatever characters they have", async () => {
    const text = Array.from({ length: 94 }, (_, i) => String.fromCharCode(33 + i)).join("");
    const received: Record<string, unknown>[] = [];
    const server = createServer();
    server.on("stream", (stream, headers) => {
      received.push(headers);
      stream.respond({ ":status": 200, "x-all": text, "x-long": "e".repeat(500) }, { waitForTrailers: true });
      stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "grpc-message": "ok" }));
      stream.resume().end("done");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const blocks = headerBlocks([
      [":method", "POST"],
      [":scheme", "http"],
      [":path", "/call"],
      [":authority", `127.0.0.1:${port}`],
      ["x-mine", text],
    ]);
    const session = new Http2Session({ host: "127.0.0.1", port, basePath: "/" }, blocks, () => {});
    onTestFinished(() => session.destroy());
    // Larger than the windows of the server.
    const body = Buffer.alloc(300_000, "a");
    for (let i = 0; i < 4; i++) {
      const answers: ReadonlyMap<string, string>[] = [];
      let data = "";
      await new Promise<void>((resolve, reject) => {
        const call = {
          onSent: () => {},
          onHeaders: (headers: ReadonlyMap<string, string>) => void answers.push(headers),
          onData: (bytes: Buffer) => {
            data += bytes;
          },
          onEnd: resolve,
          onFault: (fault: string) => reject(new Error(fault)),
        };
        session.start(call, Buffer.from("head"), i % 2 === 0 ? body : Buffer.from("small"), true);
      });
      expect(data).toBe("done");
      expect(answers[0]!.get("x-all")).toBe(text);
      expect(answers[0]!.get("x-long")).toBe("e".repeat(500));
      expect(Object.fromEntries(answers[1]!)).toEqual({ "grpc-status": "0", "grpc-message": "ok" });
      expect(received[i]).toMatchObject({ ":path": "/call", ":method": "POST", "x-mine": text });
    }
  });
});
