import { TritonError } from "@tritonjs/core";
import { expect, it } from "vitest";
import { IdentityService, identityConfig } from "../support/identity-service.js";
import { send } from "../support/send.js";
import { startHttp } from "../support/start-http.js";

const outgoing = {
  path: "/v2/models/m/infer",
  body: JSON.stringify({ inputs: [{ name: "IN", datatype: "INT32", shape: [1], data: [1] }] }),
};

/** The retry-after header of a request rejected with this time. */
async function retryAfter(retryAfterMs?: number): Promise<string | undefined> {
  const service = new IdentityService(identityConfig("m", "INT32"));
  service.onRequest = () => {
    throw new TritonError("UNAVAILABLE", "too late", retryAfterMs === undefined ? {} : { retryAfterMs });
  };
  const { status, text, headers } = await send(await startHttp(service), outgoing);
  expect({ status, text }).toEqual({ status: 503, text: '{"error":"too late"}' });
  return headers["retry-after"];
}

it.each([
  [1, "1"],
  [1000, "1"],
  [1001, "2"],
])(
  "a rejection that ends in %d ms has a retry-after header in whole seconds",
  async (milliseconds, seconds) => {
    expect(await retryAfter(milliseconds)).toBe(seconds);
  },
);

it("other rejections have no retry-after header", async () => {
  expect(await retryAfter()).toBeUndefined();
});
