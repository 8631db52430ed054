import { remote } from "@tritonjs/backends/remote";
import { Triton } from "@tritonjs/core";
import { openReplica, rightAnswers } from "./replica.js";

/** A second address of this machine. macOS has only one for IPv4. */
const SECOND_ADDRESS = process.platform === "darwin" ? "::1" : "127.0.0.2";

/** A name stands for all of its addresses, such as a headless service of Kubernetes. They come and go. */
export async function replicasOfAName(): Promise<void> {
  const first = await openReplica();
  const { port } = first;
  let addresses = ["127.0.0.1"];
  const triton = new Triton();
  triton.bind({
    modelName: "double",
    inferFunc: await remote({
      urls: `dns://double.models.svc:${port}`,
      model: "double",
      // Without `lookup`, the machine's own name service is asked.
      lookup: async () => addresses,
      lookupIntervalMs: 10,
    }),
  });
  console.log(`${await rightAnswers(triton)} of 40 answers with one address`);

  const second = await openReplica({ address: SECOND_ADDRESS, port });
  addresses = ["127.0.0.1", SECOND_ADDRESS];
  while (second.rows() === 0) await rightAnswers(triton);
  console.log("a second address has appeared, and gets requests");

  addresses = [SECOND_ADDRESS];
  for (let before = -1; before < first.rows(); ) {
    before = first.rows();
    await rightAnswers(triton);
  }
  console.log("the first address has disappeared, and gets no more");
  await first.close();
  console.log(`${await rightAnswers(triton)} of 40 answers with the other one`);
  await triton.close();
  await second.close();
}
