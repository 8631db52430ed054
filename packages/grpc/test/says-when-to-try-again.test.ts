import { type ServiceError, status } from "@grpc/grpc-js";
import { TritonError } from "@tritonjs/core";
import { expect, test } from "vitest";
import { FakeService } from "./support/fake-service.js";
import { overEachTransport } from "./support/over-each-transport.js";
import { serve } from "./support/serve.js";

/** What a client hears of a request that is refused like this. */
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

overEachTransport("a refused request", () => {
  test("tells clients when to try again", async () => {
    const { code, details, metadata } = await refusal(120);
    expect([code, details]).toEqual([status.UNAVAILABLE, "too late"]);
    expect(metadata.get("grpc-retry-pushback-ms")).toEqual(["120"]);
  });

  test("promises nothing where the server cannot tell", async () => {
    const { code, metadata } = await refusal();
    expect(code).toBe(status.UNAVAILABLE);
    expect(metadata.get("grpc-retry-pushback-ms")).toEqual([]);
  });
});
