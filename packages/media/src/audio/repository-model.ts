import type { BackendFactory } from "@tritonjs/core/backend";
import { definedMembers, TritonError } from "@tritonjs/protocol";
import { ParameterReader } from "../parameters/model-parameters.js";
import { audioBackend } from "./audio.js";
import type { AudioOptions } from "./audio-options.js";
import { planAudio } from "./audio-plan.js";
import { LENGTHS } from "./audio-preparer.js";

/**
 * The backend `audio` for models of a repository. Its options are parameters with the same names in snake case. The
 * parameter `isolation` is `worker` or `inline`. Written tensors give their names.
 *
 * @throws TritonError INVALID_ARG for unknown parameters and invalid values
 */
export const audioRepositoryBackend: BackendFactory = ({ name, config }) => {
  const read = new ParameterReader(config);
  const output = config.output.find((one) => one.name !== LENGTHS);
  const hasLengths = config.output.some((one) => one.name === LENGTHS) || undefined;
  const options = definedMembers({
    preset: read.text("preset") as AudioOptions["preset"],
    features: read.text("features") as AudioOptions["features"],
    sampleRate: read.number("sampleRate"),
    mono: read.flag("mono"),
    seconds: read.number("seconds"),
    frameLength: read.number("frameLength"),
    hopLength: read.number("hopLength"),
    nFft: read.number("nFft"),
    windowLength: read.number("windowLength"),
    center: read.flag("center"),
    power: read.number("power") as AudioOptions["power"],
    mels: read.number("mels"),
    fMin: read.number("fMin"),
    fMax: read.number("fMax"),
    melScale: read.text("melScale") as AudioOptions["melScale"],
    melNorm: read.text("melNorm") as AudioOptions["melNorm"],
    log: read.text("log") as AudioOptions["log"],
    floor: read.number("floor"),
    lengths: read.flag("lengths") ?? hasLengths,
    maxBytes: read.number("maxBytes"),
    maxSeconds: read.number("maxSeconds"),
    inputName: config.input[0]?.name,
    outputName: output?.name,
  });
  const isolation = read.text("isolation");
  read.assertNoOthers();
  if (isolation === undefined || isolation === "worker" || isolation === "inline") {
    return audioBackend(planAudio(options as AudioOptions), isolation);
  }
  throw new TritonError(
    "INVALID_ARG",
    `parameter 'isolation' of model '${name}': expected worker or inline, got '${isolation}'`,
    { reason: "INVALID_CONFIG" },
  );
};
