import { gpu } from "@tritonjs/backends/gpu";
import { batch, Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { fakeNvidiaSmi } from "../support/fake-nvidia-smi.js";
import { identityConfig, RepositoryOnDisk } from "../support/repository-on-disk.js";

/** Labels that Prometheus adds to each series of a server. */
const OF_TARGET = ["job", "instance"];

/** The labels of each series on the metrics page of a running server, by its name. */
export async function liveMetrics(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  await using _driver = await fakeNvidiaSmi("echo '0, GPU-a, 50, 1024, 512, 100.0, 700.0'");
  await using models = await RepositoryOnDisk.create({ "m/config.pbtxt": identityConfig(), "m/1/": "" });
  const triton = new Triton({
    responseCache: { byteSize: 1024 * 1024 },
    extensions: [repository({ modelRepository: models.path }), gpu()],
  });
  const model = triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(({ x }) => ({ y: x.data.map((value) => 2 * value) })),
    config: { batcher: {}, responseCache: true },
  });
  await triton.ready();
  await model.inferSample({ x: [1] });
  const page = await serviceOf(triton).metrics();
  await triton.close();
  const live = new Map<string, Set<string>>();
  for (const [, name = "", labels = ""] of page.matchAll(/^([a-zA-Z_:]\w*)(?:\{(.*)\})? /gm)) {
    const known = live.get(name) ?? new Set(OF_TARGET);
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) known.add(label);
    live.set(name, known);
  }
  // Prometheus itself makes this series for each target.
  live.set("up", new Set(OF_TARGET));
  return live;
}
