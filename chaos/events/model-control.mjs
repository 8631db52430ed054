import { setTimeout as sleep } from "node:timers/promises";

/* Models that requests load, load again and unload, over both protocols. */

const MODELS = ["loaded_js", "loaded_onnx"];

const loadAgain = {
  name: "model loaded again",
  needs: ["controlled models"],
  async run({ clients, random, log }) {
    const [model, protocol] = [random.pick(MODELS), random.pick(["http", "grpc"])];
    const event = log.begin(this.name, { server: "program", model, detail: protocol });
    await clients.program[protocol].loadModel(model);
    log.end(event);
  },
};

/** The only time in which requests of the model may be refused. */
const unloadAndLoad = {
  name: "model unloaded and loaded",
  needs: ["controlled models"],
  async run({ clients, random, log }) {
    const [model, protocol] = [random.pick(MODELS), random.pick(["http", "grpc"])];
    const event = log.begin(this.name, { server: "program", model, detail: protocol });
    await clients.program[protocol].unloadModel(model);
    await sleep(random.between(0, 1000));
    await clients.program[protocol].loadModel(model);
    log.end(event);
  },
};

export const modelControlEvents = [loadAgain, unloadAndLoad];
