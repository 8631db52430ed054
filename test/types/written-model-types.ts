import { modelTypes, readPrototxt } from "@tritonjs/core/config";

/** Configurations whose types are in `typed-models.d.ts`. */
const texts = [
  `name: "typed_resnet"
   max_batch_size: 8
   input [
     { name: "image" data_type: TYPE_FP32 dims: [ 3, -1, -1 ] },
     { name: "size-hint" data_type: TYPE_INT64 dims: [ 2 ] optional: true }
   ]
   output [ { name: "label" data_type: TYPE_STRING dims: [ 1 ] } ]`,
  `name: "typed_source" output { name: "y" data_type: TYPE_BF16 dims: 4 }`,
];

/** The output of `tritonjs types` for them. */
export function writtenModelTypes(): string {
  return modelTypes(texts.map((text) => readPrototxt(text)));
}
