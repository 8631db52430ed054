import { createPrivateKey } from "node:crypto";
import { connect } from "node:net";
import { type ChannelCredentials, credentials, status } from "@grpc/grpc-js";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Certificates, makeCertificates } from "../../../../test/support/certificates.js";
import { grpc } from "../../src/index.js";
import { FakeService } from "../support/fake-service.js";
import { GrpcClient } from "../support/grpc-client.js";
import { serve } from "../support/serve.js";

let certificates: Certificates;
beforeAll(async () => {
  certificates = await makeCertificates();
});

function clientOf(url: string, security: ChannelCredentials): GrpcClient {
  const client = new GrpcClient(url, security);
  onTestFinished(() => client.close());
  return client;
}

const ask = (client: GrpcClient) => client.infer({ modelName: "m", id: "asked" });
const answered = { id: "asked" };
const refused = { code: status.UNAVAILABLE };
const pem = (text: string) => Buffer.from(text);

describe("TLS over http2", () => {
  test("serves only clients that trust the root", async () => {
    const { ca, server } = certificates;
    const { address, client: plain } = await serve(new FakeService(), { tls: server });
    await expect(ask(clientOf(address.url, credentials.createSsl(pem(ca))))).resolves.toMatchObject(answered);
    await expect(ask(clientOf(address.url, credentials.createSsl()))).rejects.toMatchObject(refused);
    await expect(ask(plain)).rejects.toMatchObject(refused);
  });

  test("requires a client certificate when client roots are given", async () => {
    const { ca, server, client, stranger } = certificates;
    const { address } = await serve(new FakeService(), { tls: { ...server, ca } });
    const withCertificate = ({ cert, key }: { cert: string; key: string }) =>
      clientOf(address.url, credentials.createSsl(pem(ca), pem(key), pem(cert)));
    await expect(ask(withCertificate(client))).resolves.toMatchObject(answered);
    await expect(ask(withCertificate(stranger))).rejects.toMatchObject(refused);
    await expect(ask(clientOf(address.url, credentials.createSsl(pem(ca))))).rejects.toMatchObject(refused);
  });

  test("opens an encrypted key with its passphrase", async () => {
    const { ca, server } = certificates;
    const passphrase = "open sesame";
    const key = createPrivateKey(server.key).export({
      type: "pkcs8",
      format: "pem",
      cipher: "aes-256-cbc",
      passphrase,
    });
    const { address } = await serve(new FakeService(), { tls: { cert: server.cert, key, passphrase } });
    await expect(ask(clientOf(address.url, credentials.createSsl(pem(ca))))).resolves.toMatchObject(answered);
  });

  test("requests a client certificate but does not require it with `rejectUnauthorized: false`", async () => {
    const { ca, server } = certificates;
    const { address } = await serve(new FakeService(), { tls: { ...server, ca, rejectUnauthorized: false } });
    await expect(ask(clientOf(address.url, credentials.createSsl(pem(ca))))).resolves.toMatchObject(answered);
  });

  test("does not delay a stop while a client is silent during its handshake", async () => {
    const { frontend, address } = await serve(new FakeService(), { tls: certificates.server });
    const socket = connect(address.port, "localhost");
    await new Promise((resolve) => socket.once("connect", resolve));
    const closed = new Promise((resolve) => socket.on("error", () => {}).once("close", resolve));
    await frontend.stop(60_000);
    await closed;
  });

  test("rejects a key that does not match the certificate", async () => {
    const { server, stranger } = certificates;
    const wrong = grpc({ port: 0, tls: { cert: server.cert, key: stranger.key } });
    await expect(wrong.start(new FakeService())).rejects.toMatchObject({ code: "INVALID_ARG" });
  });
});
