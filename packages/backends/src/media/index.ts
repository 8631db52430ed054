import type { BackendFactory } from "@tritonjs/core/backend";
import { audioRepositoryBackend } from "./audio-backend.js";
import { imageRepositoryBackend } from "./image-backend.js";

/*
 * `@tritonjs/backends/media`: backends that prepare images and audio for models.
 */

export { audio } from "./audio-backend.js";
export type { AudioFeatures, AudioLog, AudioOptions } from "./audio-options.js";
export { image } from "./image-backend.js";
export type { ImageFit, ImageFormat, ImageKernel, ImageOptions, ImagePosition } from "./image-options.js";
export type { MelScale } from "./mel-spectrogram.js";

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = {
  image: imageRepositoryBackend,
  audio: audioRepositoryBackend,
};
