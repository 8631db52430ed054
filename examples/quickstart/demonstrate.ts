import { readFileSync } from "node:fs";
import type { ServeResult } from "@tritonjs/core";
import { askGrpc, openGrpcClient } from "./ask-grpc.js";
import { askHttpBinary, askHttpJson } from "./ask-http.js";
import { type Iris, irisSpecies, parseIris } from "./iris/iris-data.js";
import { packageFolder } from "./iris/package-folder.js";
import type { bindIris, bindLinear } from "./models.js";

/** The two models of the quick start. */
export interface Models {
  readonly linear: ReturnType<typeof bindLinear>;
  readonly iris: ReturnType<typeof bindIris>;
}

/** Calls both models in four ways at once. Prints the answers, the expected answers, and the batches that formed. */
export async function demonstrate({ linear, iris }: Models, { addresses }: ServeResult): Promise<void> {
  const url = addresses.http!.url;
  const client = openGrpcClient(addresses.grpc!.url);
  const ways: readonly [string, (row: readonly number[]) => Promise<number>][] = [
    ["in process", async (row) => Number((await iris.inferSample({ measurements: row })).species.get(0))],
    ["HTTP JSON", async (row) => (await askHttpJson(url, irisQuestion(row)))[0]!],
    ["HTTP binary", async (row) => (await askHttpBinary(url, irisQuestion(row)))[0]!],
    ["gRPC", async (row) => (await askGrpc(client, irisQuestion(row)))[0]!],
  ];
  try {
    const [inProcess, json, binary, grpc] = await Promise.all([
      linear.inferSample({ x: [2, 3] }).then(({ y }) => [...y.data]),
      askHttpJson(url, linearQuestion),
      askHttpBinary(url, linearQuestion),
      askGrpc(client, linearQuestion),
    ]);
    console.log("linear, a TypeScript callback: x = [2, 3], expected y = [2, 3, 5]");
    for (const [way, y] of Object.entries({
      "in process": inProcess,
      "HTTP JSON": json,
      "HTTP binary": binary,
      gRPC: grpc,
    })) {
      console.log(`  ${way.padEnd(12)} y = [${y!.join(", ")}]`);
    }

    console.log("\niris, an ONNX model: 150 flowers, one request each, all at once, by turns in four ways");
    const flowers = parseIris(readFileSync(new URL("iris/iris.csv", packageFolder(import.meta.url)), "utf8"));
    const answers = await Promise.all(
      flowers.map(({ measurements }, i) => ways[i % ways.length]![1](measurements)),
    );
    printFlowers(
      flowers,
      answers,
      ways.map(([way]) => way),
    );
  } finally {
    client.close();
  }
  printBatches("linear", linear.statistics());
  printBatches("iris", iris.statistics());
}

const linearQuestion = { model: "linear", input: "x", row: [2, 3], output: "y" };

const irisQuestion = (row: readonly number[]) => ({
  model: "iris",
  input: "measurements",
  row,
  output: "species",
});

function printFlowers(flowers: readonly Iris[], answers: readonly number[], ways: readonly string[]): void {
  // Print one flower in thirteen. These cover each species and each way of calling.
  for (let i = 0; i < flowers.length; i += 13) {
    const { measurements, species } = flowers[i]!;
    console.log(
      `  ${ways[i % ways.length]!.padEnd(12)} ${JSON.stringify(measurements).padEnd(18)} -> ` +
        `${irisSpecies[answers[i]!]!.padEnd(11)} expected ${irisSpecies[species]}`,
    );
  }
  for (const [w, way] of ways.entries()) {
    const asked = flowers.map((_, i) => i).filter((i) => i % ways.length === w);
    const right = asked.filter((i) => answers[i] === flowers[i]!.species).length;
    console.log(`  ${way.padEnd(12)} ${right} of ${asked.length} right`);
  }
}

function printBatches(name: string, statistics: ReturnType<Models["iris"]["statistics"]>): void {
  const sizes = statistics.batchStats.map(
    ({ batchSize, computeInfer }) => `${computeInfer.count} of ${batchSize}`,
  );
  console.log(
    `\n${name}: ${statistics.inferenceCount} requests in ${statistics.executionCount} executions; ` +
      `batches: ${sizes.join(", ")}`,
  );
}
