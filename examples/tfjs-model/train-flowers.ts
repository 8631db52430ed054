import * as tf from "@tensorflow/tfjs";

/** A trained network, and its files as a LayersModel. */
export interface TrainedFlowers {
  readonly artifacts: tf.io.ModelArtifacts;
  /** Kernel and bias of the first layer, then those of the second. */
  readonly weights: readonly Weight[];
}

export interface Weight {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

/**
 * Trains a network of two layers that gives each of three kinds of iris a score. Training uses no random numbers, and
 * only arithmetic that is equal on all machines. So the same data gives the same network.
 *
 * @param csv four measures and the kind in each line, below a line of titles
 */
export async function trainFlowers(csv: string): Promise<TrainedFlowers> {
  tf.enableProdMode();
  await tf.setBackend("cpu");
  const rows = csv.trim().split("\n").slice(1);
  const kinds = [...new Set(rows.map((row) => row.split(",")[4]!))];
  const x = tf.tensor2d(rows.map((row) => row.split(",").slice(0, 4).map(Number)));
  const y = tf.oneHot(
    tf.tensor1d(
      rows.map((row) => kinds.indexOf(row.split(",")[4]!)),
      "int32",
    ),
    3,
  );
  const initializer = (seed: number) => tf.initializers.glorotUniform({ seed });
  const model = tf.sequential({
    name: "flowers",
    layers: [
      tf.layers.dense({
        name: "hidden",
        units: 8,
        activation: "relu",
        inputShape: [4],
        kernelInitializer: initializer(7),
      }),
      tf.layers.dense({ name: "scores", units: 3, kernelInitializer: initializer(8) }),
    ],
  });
  model.compile({ optimizer: tf.train.adam(0.02), loss: "meanSquaredError" });
  await model.fit(x, y, { epochs: 200, batchSize: rows.length, shuffle: false, verbose: 0 });
  const weights = model.weights.map(({ name, shape }, i) => ({
    name,
    shape: shape.map(Number),
    values: model.getWeights()[i]!.dataSync() as Float32Array,
  }));
  let artifacts: tf.io.ModelArtifacts | undefined;
  await model.save(
    tf.io.withSaveHandler(async (saved) => {
      artifacts = saved;
      return { modelArtifactsInfo: { dateSaved: new Date(0), modelTopologyType: "JSON" } };
    }),
  );
  return { artifacts: artifacts!, weights };
}
