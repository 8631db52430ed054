/** The secret: seven. */
export default class Secret {
  static autoCompleteConfig(config) {
    config.addInput({ name: "x", dataType: "FP32", dims: [1] });
    config.addOutput({ name: "y", dataType: "FP32", dims: [1] });
    config.setMaxBatchSize(8);
  }

  execute(requests) {
    return requests.map(({ inputs }) => ({ y: inputs.x.data.map((value) => 7 * value) }));
  }
}
