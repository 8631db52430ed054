const KINDS = ["setosa", "versicolor", "virginica"];

export function autoCompleteConfig(config) {
  config.addInput({ name: "scores", dataType: "FP32", dims: [3] });
  config.addOutput({ name: "kind", dataType: "BYTES", dims: [1] });
  config.setMaxBatchSize(64);
}

/** Runs after the network: returns the name of the kind with the highest score. */
export default function nameKinds(requests) {
  return requests.map(({ inputs: { scores }, batchSize }) => ({
    kind: Array.from({ length: batchSize }, (_, row) => {
      const ofRow = KINDS.map((_kind, i) => scores.get(row, i));
      return [KINDS[ofRow.indexOf(Math.max(...ofRow))]];
    }),
  }));
}
