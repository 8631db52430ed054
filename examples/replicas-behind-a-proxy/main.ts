import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { InferenceServerClient as HttpClient } from "@tritonjs/client/http";
import { FrontProxy, type Product, products, programOf } from "./proxy.js";
import { openReplica } from "./replica.js";

/*
 * Sequences through HAProxy or nginx to three replicas. A header keeps each sequence on one replica.
 *
 *   npm start
 *   npm start -- nginx
 */

const SEQUENCES = 24;
const STEPS = [1, 2, 3, 4];

/** Runs sequences at the same time, and counts those with the right sum. A sequence ends at its first error. */
async function rightSums(client: HttpClient | GrpcClient, name: string): Promise<number> {
  const sumOf = async (id: string) => {
    let sum = 0;
    for (const value of STEPS) {
      const result = await client.infer("sum", {
        inputs: { x: { datatype: "FP32", shape: [1, 1], data: [value] } },
        sequence: { id, start: value === 1, end: value === STEPS.length },
      });
      sum = result.elements("y", "FP32")[0]!;
    }
    return sum;
  };
  const ids = Array.from({ length: SEQUENCES }, (_, i) => `${name}-${i}`);
  const sums = await Promise.all(ids.map((id) => sumOf(id).catch(() => undefined)));
  client.close();
  return sums.filter((sum) => sum === 10).length;
}

async function runBehind(product: Product): Promise<void> {
  const replicas = [await openReplica(), await openReplica(), await openReplica()];
  {
    await using proxy = await FrontProxy.start(product, replicas);
    console.log(`three replicas behind ${product}`);
    const { http, grpc } = proxy.addresses;
    const options = { sequenceHeader: "x-sequence-id" };
    console.log(`HTTP: ${await rightSums(new HttpClient(http, options), "http")} of ${SEQUENCES} sums`);
    console.log(`gRPC: ${await rightSums(new GrpcClient(grpc, options), "grpc")} of ${SEQUENCES} sums`);
    const used = replicas.filter(({ sequences }) => sequences() > 0).length;
    console.log(`more than one replica had sequences: ${used > 1}`);
    const right = await rightSums(new HttpClient(http), "none");
    console.log(`without the header, all sums are right: ${right === SEQUENCES}`);
  }
  for (const replica of replicas) await replica.close();
}

const asked = products.filter((product) => process.argv.includes(product));
const wanted = asked.length > 0 ? asked : products;
const installed = wanted.find((product) => programOf(product) !== undefined);
if (installed !== undefined) await runBehind(installed);
else console.log(`this machine has no ${wanted.join(" and no ")}; with one, sequences would run through it`);
