import type { ToolTerminal } from "../../src/command/tool-command.js";
import type { LoadGenerator } from "../../src/load/load-generator.js";
import type { OpenedTarget } from "../../src/perf/open-target.js";
import { perfWith, type Testbed } from "../../src/perf/perf.js";
import { SimulatedLoad, type SimulatedServer } from "./simulated-load.js";
import { VirtualTime } from "./virtual-time.js";

/** What a command wrote, and how it ended. */
export interface CommandEnd {
  readonly code: number;
  readonly output: string;
  readonly errors: string;
  readonly load: SimulatedLoad;
}

/** Runs the command with a simulated server on a virtual clock. `stop` resolves when the user interrupts it. */
export async function runPerf(
  args: readonly string[],
  server: SimulatedServer,
  {
    stop = new Promise<unknown>(() => {}),
    testbed = {} as Partial<Testbed>,
    target = {} as Partial<OpenedTarget>,
    clock = new VirtualTime(),
  } = {},
): Promise<CommandEnd> {
  const load = new SimulatedLoad(clock, server);
  let output = "";
  let errors = "";
  const terminal: ToolTerminal = {
    write: (text) => {
      output += text;
    },
    writeError: (text) => {
      errors += text;
    },
    stopRequested: () => stop,
  };
  const model = {
    name: "m",
    version: "",
    maxBatchSize: 8,
    decoupled: false,
    isSequenceModel: false,
    inputs: [],
    outputs: [],
    composingModels: [],
  };
  const code = await perfWith(args, terminal, {
    clock,
    openTarget: async (settings) => ({
      options: settings as Extract<typeof settings, { kind: "http" }>,
      model,
      close: async () => {},
      ...target,
    }),
    loadData: async () => ({
      kind: "tensors",
      payloads: [],
      streams: [],
      hasGivenSteps: false,
      batchSize: 1,
      timestampsMs: [0, 10, 30],
    }),
    startGenerator: async (): Promise<LoadGenerator> => load,
    ...testbed,
  });
  return { code, output, errors, load };
}
