import type { Tensor } from "@tritonjs/protocol";
import type { PendingRequest } from "../../request/pending-request.js";
import type { RequestObserver } from "../../request/request-observer.js";
import type { SequencePlace } from "../../request/sequence-info.js";
import type { PlannedStep } from "./ensemble-plan.js";
import { EnsembleTensor } from "./ensemble-tensor.js";
import type { EnsembleMember } from "./member.js";
import type { SummedTimes } from "./summed-times.js";

/** Number of responses of a decoupled step whose further steps may be in flight before the step has to wait. */
const WINDOW = 16;

/** Tensors that belong together: those of the request, or those that derive from one response of a decoupled step. */
export class StepFrame {
  readonly tensors = new Map<string, EnsembleTensor>();
  /** Number of steps that have been launched in the frame and have not ended. */
  active = 0;
  #counted = false;

  /**
   * @param readers number of reads of each tensor; a tensor without readers is not kept
   * @param source the decoupled step whose response opened the frame
   */
  constructor(
    private readonly readers: ReadonlyMap<string, number>,
    readonly source?: StepCall,
  ) {}

  /** @param sequence sequence of the steps that read the tensor, if it comes from another step */
  put(name: string, tensor: Tensor | undefined, batchSize: number, sequence?: SequencePlace): void {
    const readers = this.readers.get(name);
    if (readers === undefined) return;
    this.tensors.set(name, new EnsembleTensor(tensor, batchSize, readers, sequence));
  }

  /** Marks that the first steps of the frame have been launched. */
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
 * A step in flight. A step of a decoupled model waits before its next response in three cases: the consumer of the
 * answers is behind, later steps wait for a permit, or too many of its responses are in flight.
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
    /** Sequence of its request, as sent; the member's scheduler may change its own. */
    readonly sequence: SequencePlace,
    readerIsBehind: boolean,
    /** Times of the ensemble's request. */
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

  /** Notes that a step which follows from one of the responses waits for a permit. */
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
