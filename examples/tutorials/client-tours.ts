import { InferenceServerClient } from "@tritonjs/client/grpc";
import { OpenModels } from "./open-models.js";

const text = { datatype: "BYTES", shape: [1, 1], data: ["The service was excellent."] } as const;

/** Program 5: the calls of the gRPC client. Shared memory has an example of its own. */
export async function grpcTour(): Promise<void> {
  await using models = await OpenModels.serve(["sentiment"]);
  using client = new InferenceServerClient(models.grpcUrl);
  const { name } = await client.getServerMetadata();
  const { inputs, outputs } = await client.getModelMetadata("sentiment");
  const tensors = [...inputs, ...outputs].map(
    ({ name, datatype, shape }) => `${name} ${datatype} [${shape}]`,
  );
  console.log(`${name}: ${tensors.join(", ")}`);

  const call = { inputs: { text }, outputs: [{ name: "sentiment", classes: 1 }] };
  const one = await client.infer("sentiment", call);
  console.log(`one answer: ${labelOf(one.strings("sentiment")[0]!)}`);
  const several = await Promise.all([call, call, call].map((each) => client.infer("sentiment", each)));
  console.log(
    `several at a time: ${several.map((each) => labelOf(each.strings("sentiment")[0]!)).join(", ")}`,
  );
  const requests = ["a", "b"].map((id) => ({ modelName: "sentiment", id, ...call }));
  for await (const { id, result } of client.streamInfer(requests)) {
    console.log(`on a stream: ${id}: ${labelOf(result!.strings("sentiment")[0]!)}`);
  }
}

/** Program 11: the calls of the HTTP client, with `using` in the place of Python's `with`. */
export async function httpTour(): Promise<void> {
  await using models = await OpenModels.serve(["sentiment"]);
  const { client } = models;
  const states = async () => {
    const index = await client.getModelRepositoryIndex();
    return index
      .filter(({ name }) => name.startsWith("sentiment"))
      .map(({ name, state = "" }) => `${name} ${state}`.trim());
  };
  console.log((await states()).join(", "));
  const { name, extensions } = await client.getServerMetadata();
  console.log(`${name}: extensions ${extensions.includes("statistics") ? "with" : "without"} statistics`);
  const { inputs } = await client.getModelMetadata("sentiment");
  const { max_batch_size } = await client.getModelConfig("sentiment");
  console.log(`${inputs[0]!.name} ${inputs[0]!.datatype}, batches of ${max_batch_size}`);
  await client.infer("sentiment", { inputs: { text } });
  const { model_stats } = await client.getInferenceStatistics("sentiment");
  console.log(`inferences: ${model_stats[0]!.inference_count}`);
  const [system, cuda] = [
    await client.getSystemSharedMemoryStatus(),
    await client.getCudaSharedMemoryStatus(),
  ];
  console.log(`shared memory: ${system.length} regions of the system, ${cuda.length} of CUDA`);
  await client.unloadModel("sentiment");
  console.log(`unloaded: ${await client.isModelReady("sentiment")}`);
  await client.loadModel("sentiment");
  console.log(`loaded: ${await client.isModelReady("sentiment")}`);
}

/** The label of a class, `value:index:label`. */
function labelOf(found: string): string {
  return found.split(":")[2]!;
}
