import { expect, it } from "vitest";
import { ModelClient } from "../../src/http/index.js";
import { json } from "./support/fake-fetch.js";

const settled = () => new Promise(setImmediate);

it("ModelClient limits the number of requests in flight", async () => {
  const config = {
    name: "m",
    max_batch_size: 0,
    input: [{ name: "IN", data_type: "TYPE_INT32", dims: [1] }],
    output: [],
  };
  const answers: ((response: Response) => void)[] = [];
  const fetch = async (url: string) => {
    if (!url.endsWith("/infer")) return json(config)();
    return new Promise<Response>((resolve) => answers.push(resolve));
  };
  const client = new ModelClient("host:1", "m", { fetch, maxConcurrency: 2, maxQueueSize: 1 });
  await client.modelConfig();
  const calls = [1, 2, 3, 4].map((i) => client.inferSample({ IN: [i] }));
  await expect(calls[3]).rejects.toMatchObject({ code: "UNAVAILABLE" });
  expect(answers).toHaveLength(2);
  const answer = json({ outputs: [] });
  answers[0]!(answer());
  await calls[0];
  await settled();
  expect(answers).toHaveLength(3);
  answers[1]!(answer());
  answers[2]!(answer());
  await Promise.all(calls.slice(0, 3));
});
