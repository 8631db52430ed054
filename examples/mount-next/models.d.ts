// Written by `tritonjs types`: do not edit.

/** The models by name, for `createClient<Models>()` of `@tritonjs/client`. */
export interface Models {
  iris: {
    inputs: readonly [
      { readonly name: "measurements"; readonly dtype: "FP32"; readonly shape: readonly [4] },
    ];
    outputs: readonly [
      { readonly name: "probabilities"; readonly dtype: "FP32"; readonly shape: readonly [3] },
      { readonly name: "species"; readonly dtype: "INT64"; readonly shape: readonly [1] },
    ];
  };
}

declare module "@tritonjs/core" {
  /** The models that `triton.infer` and `triton.bind` know. */
  interface TritonModels extends Models {}
}
