const MEANS = [5.84, 3.06, 3.76, 1.2];
const RANGES = [3.6, 2.4, 5.9, 2.4];

/** Runs before the network: reads four measures from a line of text and normalizes them. */
export default class ReadFlowers {
  static autoCompleteConfig(config) {
    config.addInput({ name: "line", dataType: "BYTES", dims: [1] });
    config.addOutput({ name: "normal", dataType: "FP32", dims: [4] });
    config.setMaxBatchSize(64);
    config.setDynamicBatching();
  }

  initialize({ metrics }) {
    this.read = metrics.counter({ name: "flowers_read_total", help: "Lines that were flowers" });
  }

  execute(requests) {
    return requests.map(({ inputs, batchSize }) => {
      const lines = inputs.line.data.map((bytes) => Buffer.from(bytes).toString());
      const wrong = lines.find((line) => measuresOf(line) === undefined);
      // The error fails only this request; the others of the batch continue.
      if (wrong !== undefined) return new Error(`a flower has four measures, got '${wrong}'`);
      this.read.inc(batchSize);
      return { normal: lines.map((line) => measuresOf(line).map((x, i) => (x - MEANS[i]) / RANGES[i])) };
    });
  }
}

function measuresOf(line) {
  const measures = line.split(",").map(Number);
  return measures.length === 4 && measures.every(Number.isFinite) ? measures : undefined;
}
