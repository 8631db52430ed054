/*
 * How long a test of a service of three models takes without ONNX Runtime: a detector, a classifier and an ensemble of
 * them are faked on a virtual clock, called, made to fail, and closed.
 *
 *   node bench/testing.bench.mjs
 */
const start = performance.now();
const { Triton } = await import("@tritonjs/core");
const { assertTensors, Faults, fakeModel, VirtualClock } = await import("@tritonjs/testing");
const imported = performance.now();

async function testService() {
  const clock = new VirtualClock();
  const faults = new Faults();
  const triton = new Triton({ clock });
  const image = { name: "image", dtype: "FP32", shape: [3, 8, 8] };
  const boxes = { name: "boxes", dtype: "FP32", shape: [4] };
  const label = { name: "label", dtype: "BYTES", shape: [1] };
  const detector = triton.bind({
    modelName: "detector",
    inferFunc: fakeModel({
      inputs: [image],
      outputs: [boxes],
      answer: () => ({ boxes: [1, 2, 3, 4] }),
      faults,
    }),
  });
  triton.bind({
    modelName: "classifier",
    inferFunc: fakeModel({
      inputs: [boxes],
      outputs: [label],
      answer: ({ boxes }) => ({ label: `class ${boxes.get(0)}` }),
    }),
  });
  const service = triton.bindEnsemble({
    modelName: "service",
    inputs: [image],
    outputs: [label],
    steps: [
      { modelName: "detector", inputMap: { image: "image" }, outputMap: { boxes: "found" } },
      { modelName: "classifier", inputMap: { boxes: "found" }, outputMap: { label: "label" } },
    ],
    config: { batching: false },
  });
  const pixels = new Float32Array(192);
  const settled = async (call) => {
    const outcome = call.catch((error) => error);
    await clock.advance(60_000);
    return outcome;
  };
  assertTensors(await settled(detector.inferSample({ image: pixels })), { boxes: [1, 2, 3, 4] });
  for (const fault of ["crash", "out-of-memory", "wrong-shape", "late", "nan"]) {
    faults.next(fault);
    await settled(service.inferSample({ image: pixels }));
  }
  assertTensors(await settled(service.inferSample({ image: pixels })), { label: ["class 1"] });
  const closed = triton.close();
  await clock.advance(0);
  await closed;
}

await testService();
const first = performance.now();
const ROUNDS = 20;
for (let i = 0; i < ROUNDS; i++) await testService();
const rest = performance.now();
console.log(
  `import ${(imported - start).toFixed(0)} ms, first test ${(first - imported).toFixed(0)} ms, ` +
    `further tests ${((rest - first) / ROUNDS).toFixed(1)} ms each`,
);
