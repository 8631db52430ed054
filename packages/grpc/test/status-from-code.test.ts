import { type ServiceError, status } from "@grpc/grpc-js";
import { TritonError } from "@tritonjs/core";
import { expect, test } from "vitest";
import { FakeService } from "./support/fake-service.js";
import { overEachTransport } from "./support/over-each-transport.js";
import { serve } from "./support/serve.js";

/** The error that a client gets for a request rejected with this retry time. */
async function refusal(retryAfterMs?: number): Promise<ServiceError> {
  const options = retryAfterMs === undefined ? {} : { retryAfterMs };
  const { client } = await serve(
    new FakeService({}, () => {
      throw new TritonError("UNAVAILABLE", "too late", options);
    }),
  );
  return client.infer({ modelName: "m" }).then(
    () => expect.fail("the request was answered"),
    (error: ServiceError) => error,
  );
}

overEachTransport("a rejected request", () => {
  test("tells the client when to retry", async () => {
    const { code, details, metadata } = await refusal(120);
    expect([code, details]).toEqual([status.UNAVAILABLE, "too late"]);
    expect(metadata.get("grpc-retry-pushback-ms")).toEqual(["120"]);
  });

  test("has no retry time when the server does not know one", async () => {
    const { code, metadata } = await refusal();
    expect(code).toBe(status.UNAVAILABLE);
    expect(metadata.get("grpc-retry-pushback-ms")).toEqual([]);
  });
});
