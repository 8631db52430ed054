import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { batch, Triton, TritonError } from "@tritonjs/core";
import { grpc } from "@tritonjs/grpc";
import { http } from "@tritonjs/http";
import { Agent, fetch } from "undici";
import { selfSigned } from "./certificates.js";

/*
 * A server with three locks: certificates for connections, a hook for requests, a token for the operator.
 *
 *   npm start
 */

const server = await selfSigned("server");
const known = await selfSigned("client");

await using triton = new Triton({
  security: {
    accessToken: "the token of the operator",
    authenticate: ({ headers, group }) => {
      const user = headers.get("authorization")?.replace(/^Bearer /, "");
      if (user === undefined)
        throw new TritonError("UNAVAILABLE", "a token is required", { reason: "UNAUTHENTICATED" });
      if (user === "reader" && group === "inference")
        throw new TritonError("UNAVAILABLE", "readers may not infer", { reason: "PERMISSION_DENIED" });
    },
  },
});
triton.bind({
  modelName: "double",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
});
// `ca` demands a certificate of the client.
const tls = { cert: server.cert, key: server.key, ca: known.cert };
const { addresses } = await triton.serve({ frontends: [http({ port: 0, tls }), grpc({ port: 0, tls })] });
const httpUrl = `https://localhost:${addresses.http!.port}`;
const grpcUrl = `localhost:${addresses.grpc!.port}`;

/** Asks over both protocols and prints the answers or the refusals. */
async function ask(who: string, identity: object, user?: string): Promise<void> {
  const own = { ca: server.cert, ...identity };
  const dispatcher = new Agent({ connect: own });
  const headers: Record<string, string> = user === undefined ? {} : { authorization: `Bearer ${user}` };
  const options = { headers, retries: 0 };
  const overHttp = new HttpClient(httpUrl, {
    ...options,
    fetch: ((url: string, init: object) => fetch(url, { ...init, dispatcher })) as never,
  });
  const overGrpc = new GrpcClient(grpcUrl, { ...options, tls: own });
  for (const [protocol, client] of [
    ["HTTP", overHttp],
    ["gRPC", overGrpc],
  ] as const) {
    const answer = client.infer("double", { inputs: { x: { datatype: "FP32", shape: [1, 1], data: [21] } } });
    const text = await answer.then(
      (result) => String(result.elements("y", "FP32")[0]),
      (error: unknown) => TritonError.from(error).reason,
    );
    console.log(`${who}, ${protocol}: ${text}`);
    client.close();
  }
  await dispatcher.close();
}

const withCertificate = { cert: known.cert, key: known.key };
await ask("without a certificate", {});
await ask("without a token", withCertificate);
await ask("reader", withCertificate, "reader");
await ask("writer", withCertificate, "writer");

// The statistics are the operator's: they need the access token in addition.
for (const accessToken of [undefined, "the token of the operator"]) {
  const client = new GrpcClient(grpcUrl, {
    tls: { ca: server.cert, ...withCertificate },
    headers: { authorization: "Bearer writer" },
    ...(accessToken !== undefined && { accessToken }),
  });
  const text = await client.getInferenceStatistics().then(
    ([double]) => `${double?.inferenceCount} inferences`,
    (error: Error) => error.message,
  );
  console.log(`statistics ${accessToken === undefined ? "without" : "with"} the access token: ${text}`);
  client.close();
}
