import type { Tensor } from "@tritonjs/protocol";
import type { PendingRequest } from "../../request/pending-request.js";
import type { RequestObserver } from "../../request/request-observer.js";
import type { SequencePlace } from "../../request/sequence-info.js";
import type { PlannedStep } from "./ensemble-plan.js";
import { EnsembleTensor } from "./ensemble-tensor.js";
import type { EnsembleMember } from "./member.js";
import type { SummedTimes } from "./summed-times.js";

/** Responses of a decoupled step whose further steps are under way, before the step has to wait. */
const WINDOW = 16;

/** Tensors that belong together: those of the request, or those that follow from one response of a decoupled step. */
export class StepFrame {
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
  put(name: string, tensor: Tensor | undefined, batchSize: number, sequence?: SequencePlace): void {
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
export class StepCall implements RequestObserver<PendingRequest> {
  framesUnderWay = 0;
  #inLine = 0;
  #readerIsBehind: boolean;

  constructor(
    readonly step: PlannedStep,
    readonly frame: StepFrame,
    readonly member: EnsembleMember,
    readonly request: PendingRequest,
    /** Of its request, whatever the member's scheduler makes of it. */
    readonly sequence: SequencePlace,
    readerIsBehind: boolean,
    /** Of the request of the ensemble. */
    private readonly times: SummedTimes,
  ) {
    this.#readerIsBehind = readerIsBehind;
    request.observe(this);
    this.adapt();
  }

  computed(_request: PendingRequest, inputMs: number, inferMs: number, outputMs: number): void {
    this.times.add(inputMs, inferMs, outputMs);
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
