import { stat } from "node:fs/promises";
import { join } from "node:path";
import {
  compareLayers,
  type LayerError,
  ModelRunner,
  makeVariant,
  type OnnxModel,
  type Reference,
  type Sample,
  saveOptimizedForm,
  VARIANT_TEXTS,
  type VariantComparison,
  type VariantName,
  type VariantOptions,
  writeVariant,
} from "@tritonjs/backends/optimize";
import { TritonError } from "@tritonjs/protocol";
import { errorFault, type VariantLimits, type VariantReport } from "./choose-variant.js";

/** A form of the model on the disk. */
export interface WrittenVariant {
  readonly report: VariantReport;
  /** Its file; absent if it could not be made. */
  readonly file?: string;
  /** Parameters of its configuration. @default none */
  readonly parameters?: Readonly<Record<string, string>>;
}

/** Parameters with which ONNX Runtime gives memory back after each run, and asks for it in each. */
const LOW_MEMORY = { enable_mem_arena: "0", enable_mem_pattern: "0" };

/** Layers that are left out, one after the other, before a variant is given up. */
const MOST_KEPT = 6;

/** Samples on which layers are compared: each keeps all values of the model in memory. */
const LAYER_SAMPLES = 4;

/**
 * Makes the forms of a model, writes each, and checks the written file against the original on the samples. Of a form
 * that breaks a limit, the layers that add most of the error stay as they were, until the rest is within the limits.
 */
export class VariantWorkshop {
  constructor(
    private readonly folder: string,
    private readonly prepared: OnnxModel,
    private readonly reference: Reference,
    private readonly limits: VariantLimits,
    private readonly options: VariantOptions & { readonly samples: readonly Sample[] },
  ) {}

  /** The original as it is, or a form that ONNX Runtime made, under a name. */
  async existing(name: string, text: string, file: string, bytes: number): Promise<WrittenVariant> {
    const plain = { name, text, layers: [], kept: [], bytes, worstLayers: [], runs: [] };
    try {
      return { file, report: { ...plain, ...(await this.#check(file)) } };
    } catch (error) {
      return { report: { ...plain, fault: faultOf(error) } };
    }
  }

  /** ONNX Runtime's own form of a written variant, for this processor. */
  async ownForm({ report, file }: WrittenVariant): Promise<WrittenVariant> {
    const name = `${report.name}-ort`;
    const target = join(this.folder, `${name}.onnx`);
    const text = `ONNX Runtime's form of ${report.name} for this processor`;
    try {
      await saveOptimizedForm(file!, target);
      return await this.existing(name, text, target, (await stat(target)).size);
    } catch (error) {
      const { layers, kept } = report;
      return {
        report: { name, text, layers, kept, bytes: 0, worstLayers: [], runs: [], fault: faultOf(error) },
      };
    }
  }

  /** The same file, served without ONNX Runtime's memory arena. */
  lowMemory({ report, file }: WrittenVariant): WrittenVariant {
    const text = `${report.text}, without ONNX Runtime's memory arena`;
    return {
      file: file!,
      parameters: LOW_MEMORY,
      report: { ...report, name: `${report.name}-low-memory`, text },
    };
  }

  /** A variant and, if it breaks a limit, the form of it that does not. */
  async make(name: VariantName, signal: AbortSignal): Promise<readonly WrittenVariant[]> {
    const first = await this.#variant(name, name, []);
    const made = [first];
    const { report } = first;
    if (report.fault === undefined || report.comparison === undefined || name === "clean") return made;
    const kept: string[] = [];
    let { worstLayers: worst } = report;
    while (kept.length < MOST_KEPT && !signal.aborted) {
      const next = worst.find(({ layer, added }) => added > 0 && !kept.includes(layer));
      if (next === undefined) break;
      kept.push(next.layer);
      const mixed = await this.#variant(name, `${name}-mixed`, [...kept]);
      if (mixed.report.comparison === undefined) break;
      if (mixed.report.fault === undefined) return [...made, mixed];
      worst = mixed.report.worstLayers;
    }
    return made;
  }

  async #variant(name: VariantName, title: string, kept: readonly string[]): Promise<WrittenVariant> {
    const text =
      kept.length === 0
        ? VARIANT_TEXTS[name]
        : `${VARIANT_TEXTS[name]}; ${kept.join(", ")} as in the original`;
    const plain = { name: title, text, kept, worstLayers: [], runs: [] };
    try {
      const keep = [...(this.options.keep ?? []), ...kept];
      const { model, changes } = await makeVariant(name, this.prepared, { ...this.options, keep });
      const inside = model.commit();
      const file = join(this.folder, `${title}.onnx`);
      const bytes = await writeVariant(model, file);
      const described = { ...plain, layers: changes.layers, bytes };
      try {
        const checked = await this.#check(file);
        if (checked.fault === undefined) return { file, report: { ...described, ...checked } };
        const worstLayers = await this.#worst(inside, new Set(changes.layers));
        const layer = worstLayers[0];
        const culprit =
          layer === undefined ? "" : `; layer '${layer.layer}' (${layer.operator}) adds most of it`;
        return {
          file,
          report: { ...described, ...checked, worstLayers, fault: `${checked.fault}${culprit}` },
        };
      } catch (error) {
        return { file, report: { ...described, fault: faultOf(error) } };
      }
    } catch (error) {
      return { report: { ...plain, layers: [], bytes: 0, fault: faultOf(error) } };
    }
  }

  async #check(file: string): Promise<{ comparison: VariantComparison; cpuMs: number; fault?: string }> {
    const runner = await ModelRunner.open(file);
    try {
      const comparison = await this.reference.compare(runner, this.options.signal);
      const cpuMs = await runner.cpuMs(this.reference.samples[0]!);
      const fault = errorFault(comparison, this.reference.own(), this.limits);
      return { comparison, cpuMs, ...(fault !== undefined && { fault }) };
    } finally {
      await runner.close();
    }
  }

  /** The changed layers that add most of the error. Others only pass it on, or make it larger. */
  async #worst(variant: OnnxModel, changed: ReadonlySet<string>): Promise<readonly LayerError[]> {
    try {
      const samples = this.reference.samples.slice(0, LAYER_SAMPLES);
      const layers = await compareLayers(this.prepared, variant, samples);
      return layers.filter(({ layer, added }) => added > 0 && changed.has(layer)).slice(0, 10);
    } catch {
      // The outputs have shown the error; where it comes from is an addition.
      return [];
    }
  }
}

/** Faults of a variant end that variant. Others, such as a full disk or an interruption, end the run. */
function faultOf(error: unknown): string {
  if (TritonError.is(error) && error.code !== "UNAVAILABLE") return error.message.split("\n")[0]!;
  throw error;
}
