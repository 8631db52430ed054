import { sampleModel } from "./sample-model.js";

const config = `# The fields are those of Triton: docs/model-configuration.md of tritonjs has them all.
backend: "onnxruntime"
max_batch_size: 8
input [ { name: "features" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "probabilities" data_type: TYPE_FP32 dims: [ 3 ] label_filename: "labels.txt" } ]
dynamic_batching { max_queue_delay_microseconds: 500 }
`;

const readme = (folder: string) => `# A model repository

\`tritonjs serve --model-repository ${folder}\` serves it, on the ports 8000 (HTTP), 8001 (gRPC) and 8002 (metrics).
Ask it: \`curl localhost:8000/v2/models/classifier/infer -d '{"inputs":[{"name":"features","datatype":"FP32","shape":[1,4],"data":[5,3,1,0]}]}'\`
Each model is a folder with its configuration, \`config.pbtxt\`, and a folder for each version with the model's file.
Look for mistakes with \`tritonjs config check ${folder}\`; write TypeScript types with \`tritonjs types ${folder} --out models.d.ts\`.
`;

/** The files of a repository with one model that works at once. */
export function sampleRepository(folder: string): Record<string, string | Uint8Array> {
  return {
    "README.md": readme(folder),
    "classifier/config.pbtxt": config,
    "classifier/labels.txt": "small\nmedium\nlarge\n",
    "classifier/1/model.onnx": sampleModel(),
  };
}
