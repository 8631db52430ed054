import { readFile } from "node:fs/promises";
import { OpenModels, pathOf } from "./open-models.js";
import { likeTorchvision, readPicture } from "./pictures.js";

/** Fields of a configuration as served. */
interface Served {
  readonly instance_group: readonly { readonly count: number; readonly kind: string }[];
  readonly parameters: Readonly<Record<string, { readonly string_value: string }>>;
}

/** Program 8: a network with warm-up. Ten runs of random data come before the model is ready. */
export async function warmUp(): Promise<void> {
  await using models = await OpenModels.serve(["resnet_classification"]);
  const { client } = models;
  console.log(`ready: ${await client.isModelReady("resnet_classification")}`);
  const { instance_group, parameters } = (await client.getModelConfig(
    "resnet_classification",
  )) as unknown as Served;
  console.log(`instances: ${instance_group.map(({ count, kind }) => `${count} of ${kind}`)}`);
  console.log(`a substitute ${parameters.substitute!.string_value}`);
  const { model_stats } = await client.getInferenceStatistics("resnet_classification");
  console.log(`runs before the first client: ${model_stats[0]!.execution_count}`);
  const { outputs } = await client.infer("resnet_classification", {
    inputs: {
      input_tensor: { datatype: "FP32", shape: [3, 224, 224], data: await likeTorchvision("orange") },
    },
  });
  console.log(
    `output_tensor [${outputs.output_tensor!.shape}], best class ${best(outputs.output_tensor!.data as Float32Array)}`,
  );
}

/** Program 10: `reshape`, a client that prepares the picture as torchvision does, and all classes in order. */
export async function resnet50(): Promise<void> {
  await using models = await OpenModels.serve(["resnet50"]);
  for (const name of ["orange", "traffic-light"]) {
    const answer = await models.client.infer("resnet50", {
      inputs: { input: { datatype: "FP32", shape: [3, 224, 224], data: await likeTorchvision(name) } },
      outputs: [{ name: "output", classes: 1000 }],
    });
    const classes = answer.strings("output");
    const [first] = classes;
    console.log(`${name}: ${classes.length} classes, class ${first!.split(":")[1]} first`);
  }
}

/** Program 14: the steps of DALI in front of ResNet-50, from decoded pixels of any size. */
export async function dali(): Promise<void> {
  await using models = await OpenModels.serve(["resnet50_ensemble"]);
  for (const name of ["orange", "traffic-light"]) {
    const { height, width, values } = await readPicture(name);
    const answer = await models.client.infer("resnet50_ensemble", {
      inputs: {
        ENSEMBLE_INPUT_0: { datatype: "FP32", shape: [1, height, width, 3], data: Float32Array.from(values) },
      },
    });
    console.log(`${name}: class ${best(answer.elements("ENSEMBLE_OUTPUT_0", "FP32"))}`);
  }
}

/** Program 12: a class and a segmentation from one encoded image. */
export async function twoNetworks(): Promise<void> {
  await using models = await OpenModels.serve(["ensemble_model"]);
  const file = await readFile(pathOf("pictures/orange.png"));
  const answer = await models.client.infer("ensemble_model", {
    inputs: { IMAGE: { datatype: "BYTES", shape: [1, 1], data: [file] } },
  });
  const maps = answer.elements("SEGMENTATION", "FP32");
  const middle = 112 * 224 + 112;
  const shares = [0, 1, 2].map((map) => maps[map * 224 * 224 + middle]!);
  const colour = ["red", "green", "blue"][shares.indexOf(Math.max(...shares))];
  console.log(`class ${best(answer.elements("CLASSIFICATION", "FP32"))}, mostly ${colour} in the middle`);
}

function best(values: Float32Array): number {
  return values.indexOf(values.reduce((most, value) => Math.max(most, value)));
}
