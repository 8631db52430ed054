// Written by `tritonjs types`: do not edit.

/** The models by name, for `createClient<Models>()` of `@tritonjs/client`. */
export interface Models {
  typed_resnet: {
    inputs: readonly [
      { readonly name: "image"; readonly dtype: "FP32"; readonly shape: readonly [3, -1, -1] },
      {
        readonly name: "size-hint";
        readonly dtype: "INT64";
        readonly shape: readonly [2];
        readonly optional: true;
      },
    ];
    outputs: readonly [{ readonly name: "label"; readonly dtype: "BYTES"; readonly shape: readonly [1] }];
  };
  typed_source: {
    inputs: readonly [];
    outputs: readonly [{ readonly name: "y"; readonly dtype: "BF16"; readonly shape: readonly [4] }];
  };
}

declare module "@tritonjs/core" {
  /** The models that `triton.infer` and `triton.bind` know. */
  interface TritonModels extends Models {}
}
