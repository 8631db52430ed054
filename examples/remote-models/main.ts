import { remote } from "@tritonjs/backends/remote";
import { Triton } from "@tritonjs/core";
import { hedgedRequests } from "./hedged-requests.js";
import { openReplica, rightAnswers } from "./replica.js";
import { replicasOfAName } from "./replicas-of-a-name.js";

/*
 * A model whose batches run on two other servers. One of them goes away, and nobody notices. Then one hangs, and servers
 * of a name come and go.
 *
 *   npm start
 */

const [first, second] = [await openReplica(), await openReplica()];
const triton = new Triton();
triton.bind({
  modelName: "double",
  // A request may run twice, so a batch whose server disappears goes to the other one.
  inferFunc: await remote({ urls: [first.url, second.url], model: "double", idempotent: true }),
});

console.log(`${await rightAnswers(triton)} of 40 answers with two servers`);
console.log(`both servers had some: ${[first, second].every(({ rows }) => rows() > 0)}`);
await first.close();
console.log(`${await rightAnswers(triton)} of 40 answers with one server`);
await triton.close();
await second.close();

await hedgedRequests();
await replicasOfAName();
