export interface VideoForm {
  readonly width?: number;
  readonly height?: number;
  readonly frames?: number;
  readonly fps?: number;
  readonly step?: number;
}

export function boxOf(index: number, form: { width: number; height: number; step?: number }): number[];
export function drawFrame(index: number, form: { width: number; height: number; step?: number }): Uint8Array;
export function drawVideo(path: string, form?: VideoForm): Promise<number[][]>;
