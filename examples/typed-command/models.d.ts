// Written by `tritonjs types`: do not edit.

/** The models by name, for `createClient<Models>()` of `@tritonjs/client`. */
export interface Models {
  classify: {
    inputs: readonly [{ readonly name: "normal"; readonly dtype: "FP32"; readonly shape: readonly [4] }];
    outputs: readonly [{ readonly name: "scores"; readonly dtype: "FP32"; readonly shape: readonly [3] }];
  };
  /** An ensemble of normalize, classify. */
  flowers: {
    inputs: readonly [{ readonly name: "measures"; readonly dtype: "FP32"; readonly shape: readonly [4] }];
    outputs: readonly [
      {
        readonly name: "scores";
        readonly dtype: "FP32";
        readonly shape: readonly [3];
        readonly labels: readonly ["setosa", "versicolor", "virginica"];
      },
    ];
  };
  normalize: {
    inputs: readonly [{ readonly name: "measures"; readonly dtype: "FP32"; readonly shape: readonly [4] }];
    outputs: readonly [{ readonly name: "normal"; readonly dtype: "FP32"; readonly shape: readonly [4] }];
  };
}
