import type { InferenceRequest } from "../../request/inference-request.js";
import type { Tensor } from "../../tensor/tensor.js";
import type { PlannedStep } from "./ensemble-plan.js";
import { EnsembleTensor } from "./ensemble-tensor.js";
import type { EnsembleMember } from "./member.js";
import type { StepSequence } from "./step-sequence.js";

/** Responses of a decoupled step whose further steps are under way, before the step has to wait. */
const WINDOW = 16;

/** Tensors that belong together: those of the request, or those that follow from one response of a decoupled step. */
export class Frame {
  readonly tensors = new Map<string, EnsembleTensor>();
  /** Steps that have been launched in the frame and have not ended. */
  active = 0;
  #counted = false;

  /**
   * @param readers how many times each tensor is read; one that nobody reads is not kept
   * @param source the decoupled step whose response opened the frame
   */
  constructor(
    private readonly readers: ReadonlyMap<string, number>,
    readonly source?: StepCall,
  ) {}

  /** @param sequence of the steps that read the tensor, where it comes from another step */
  put(name: string, tensor: Tensor | undefined, batchSize: number, sequence?: StepSequence): void {
    const readers = this.readers.get(name);
    if (readers === undefined) return;
    this.tensors.set(name, new EnsembleTensor(tensor, batchSize, readers, sequence));
  }

  /** The first steps of the frame have been launched. */
  opened(): void {
    if (this.active === 0 || this.source === undefined) return;
    this.#counted = true;
    this.source.framesUnderWay++;
    this.source.adapt();
  }

  stepEnded(): void {
    this.active--;
    if (this.active > 0 || !this.#counted || this.source === undefined) return;
    this.#counted = false;
    this.source.framesUnderWay--;
    this.source.adapt();
  }
}

/**
 * A step under way. If its model is decoupled, it waits before its next response while the reader of the answers is
 * behind, while steps after it stand in line, or while there are many of its responses on the way.
 */
export class StepCall {
  framesUnderWay = 0;
  #inLine = 0;
  #readerIsBehind: boolean;

  constructor(
    readonly step: PlannedStep,
    readonly frame: Frame,
    readonly member: EnsembleMember,
    readonly request: InferenceRequest,
    /** Of its request, whatever the member's scheduler makes of it. */
    readonly sequence: StepSequence,
    readerIsBehind: boolean,
  ) {
    this.#readerIsBehind = readerIsBehind;
    this.adapt();
  }

  set readerIsBehind(behind: boolean) {
    this.#readerIsBehind = behind;
    this.adapt();
  }

  /** A step that follows from one of the responses waits for its turn. */
  joinLine(): void {
    this.#inLine++;
    this.adapt();
  }

  leaveLine(): void {
    this.#inLine--;
    this.adapt();
  }

  adapt(): void {
    if (this.#readerIsBehind || this.#inLine > 0 || this.framesUnderWay >= WINDOW) this.request.pause();
    else this.request.resume();
  }
}
