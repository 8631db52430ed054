import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { NamedTensor } from "../clients/client.js";
import { readTensorProto } from "./tensor-proto.js";

/** ONNX's own conformance data, as Debian's package `libonnx-testdata` installs it. */
const ROOT = "/usr/share/libonnx-testdata/data";

const GROUPS = ["node", "simple", "pytorch-operator", "pytorch-converted"];

export const hasConformanceData = existsSync(ROOT);

/** A model with its inputs and outputs. */
export interface ConformanceModel {
  /** Group and name. */
  readonly name: string;
  readonly directory: string;
}

/** All models, in the order of their names. */
export function conformanceModels(): ConformanceModel[] {
  return GROUPS.flatMap((group) =>
    readdirSync(join(ROOT, group))
      .sort()
      .map((name) => ({ name: `${group}-${name}`, directory: join(ROOT, group, name) }))
      .filter(({ directory }) => existsSync(join(directory, "model.onnx"))),
  );
}

/** Inputs and outputs of one run. Undefined in place of a tensor of a type that the v2 protocol lacks. */
export interface DataSet {
  readonly inputs: readonly (NamedTensor | undefined)[];
  readonly outputs: readonly (NamedTensor | undefined)[];
}

/** The runs of a model. */
export async function dataSets({ directory }: ConformanceModel): Promise<DataSet[]> {
  const folders = readdirSync(directory).filter((name) => name.startsWith("test_data_set_"));
  return Promise.all(
    folders.map(async (folder) => {
      const tensors = async (kind: string) => {
        const found: (NamedTensor | undefined)[] = [];
        for (let i = 0; existsSync(join(directory, folder, `${kind}_${i}.pb`)); i++) {
          found.push(readTensorProto(await readFile(join(directory, folder, `${kind}_${i}.pb`))));
        }
        return found;
      };
      return { inputs: await tensors("input"), outputs: await tensors("output") };
    }),
  );
}
