import { Tensor } from "@tritonjs/core";
import { requireKoffi } from "@tritonjs/core/internal";
import { http } from "@tritonjs/http";
import { serviceOf } from "@tritonjs/server";
import type { NdArray } from "ndarray";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type CudartState,
  cCompiler,
  cudartState,
  openCudaHome,
  withoutCompiler,
} from "../../../../test/support/cudart-stand-in.js";
import { matrixOnnx } from "../../../../test/support/onnx-models.js";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { hasPython, withoutPython } from "../../../../test/support/python.js";
import type { ModelVersion } from "../../../core/src/model/model-version.js";
import { gpu } from "../../src/gpu/index.js";
import { onnxruntime } from "../../src/onnxruntime/index.js";
import { type RecordingLibrary, recordingLibrary } from "../onnxruntime/native/recording-library.js";
import { modelClass, PythonServer } from "./python-server.js";

/*
 * Tensors on a GPU between ONNX models and the processes of Python models. The stand-in for CUDA's runtime library has
 * its memory of a GPU in shared memory objects, so numpy computes there in place of a kernel. Both processes use it, and
 * each counts its own copies. The stand-in for ONNX Runtime has its memory of a GPU on the CPU.
 */

/** Reads and makes DLPack capsules as a library on a GPU does, and allocates memory there. */
const GPU = `import ctypes
class Managed(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
                ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p))]
get = ctypes.pythonapi.PyCapsule_GetPointer
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
make = ctypes.pythonapi.PyCapsule_New
make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
cuda = ctypes.CDLL(os.environ["CUDA_HOME"] + "/lib64/libcudart.so.12")

def read(tensor):
    """The elements of a tensor on the GPU, for what stands for a kernel here; its device and shape."""
    capsule = tensor.to_dlpack()
    managed = ctypes.cast(get(capsule, b"dltensor"), ctypes.POINTER(Managed)).contents
    shape = managed.shape[: managed.ndim]
    count = int(np.prod(shape))
    floats = np.ctypeslib.as_array(ctypes.cast(managed.data + managed.byte_offset, ctypes.POINTER(ctypes.c_float)), (count,))
    return floats, (managed.device_type, managed.device_id), shape, capsule

class OnGpu:
    freed = 0
    def __init__(self, shape, offset=0):
        self.size = 4 * int(np.prod(shape))
        self.at = ctypes.c_void_p()
        assert cuda.cudaMalloc(ctypes.byref(self.at), ctypes.c_size_t(offset + self.size)) == 0
        self.floats = np.ctypeslib.as_array(ctypes.cast(self.at.value + offset, ctypes.POINTER(ctypes.c_float)), tuple(shape))
        self.dims = (ctypes.c_int64 * len(shape))(*shape)
        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.free)
        self.managed = Managed(self.at.value, 2, 0, len(shape), 2, 32, 1, self.dims, None, offset, None, self.deleter)
    def free(self, _):
        OnGpu.freed += 1
        cuda.cudaFree(self.at)
    def __dlpack_device__(self):
        return (2, 0)
    def __dlpack__(self, stream=None):
        return make(ctypes.addressof(self.managed), b"dltensor", None)

alive = []
def on_gpu(name, values):
    made = OnGpu(values.shape, 64)
    made.floats[...] = values
    alive.append(made)
    return pb_utils.Tensor.from_dlpack(name, made)

def counts():
    return [cuda.standInCount(4), cuda.standInCount(5), OnGpu.freed]
`;

const config = (force: string) => `
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "facts" data_type: TYPE_FP32 dims: [ -1 ] } ]
max_batch_size: 8
parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "${force}" } }`;

/** Adds 1 where the input is; facts: is_cpu, device, copies to or from the CPU, on the GPU, tensors freed. */
const adds = (prelude = "") =>
  modelClass(`${prelude}
def execute(self, requests):
    responses = []
    for request in requests:
        x = pb_utils.get_input_tensor_by_name(request, "x")
        if x.is_cpu():
            y, device = pb_utils.Tensor("y", x.as_numpy() + 1), x.__dlpack_device__()
        else:
            floats, device, shape, capsule = read(x)
            assert device == x.__dlpack_device__() and shape == x.shape()
            y = on_gpu("y", (floats + 1).reshape(shape))
            del floats, capsule
        facts = np.asarray([[x.is_cpu(), *device, *counts()]] * x.shape()[0], np.float32)
        responses.append(pb_utils.InferenceResponse([y, pb_utils.Tensor("facts", facts)]))
    return responses`).replace("class TritonPythonModel", `${GPU}\nclass TritonPythonModel`);

const models = {
  adds: { code: adds(), config: config("no") },
  on_cpu: { code: adds(), config: config("yes") },
  // Keeps its input, and checks at the next request that it is unchanged.
  keeps: {
    code: adds().replace(
      "responses = []",
      `responses = []
        kept = getattr(self, "kept", [])
        for value, floats in kept:
            assert (floats == value).all(), value
        x = pb_utils.get_input_tensor_by_name(requests[0], "x")
        floats, *_, capsule = read(x)
        keeps = floats[0] >= 0
        self.kept = [*kept, (floats.copy(), floats)] if keeps else []
        self.capsules = [*getattr(self, "capsules", []), (capsule, x)] if keeps else []`,
    ),
    config: config("no"),
  },
  refuses: {
    code: adds().replace("x.is_cpu():", "x.is_cpu() or x.as_numpy() is None:"),
    config: config("no"),
  },
  dies: {
    code: adds().replace(
      "floats, device",
      "os._exit(3) if read(x)[0][0] < 0 else None\n                floats, device",
    ),
    config: config("no"),
  },
  calls: {
    code: adds().replace(
      `y = on_gpu("y", (floats + 1).reshape(shape))`,
      `inner = pb_utils.InferenceRequest(model_name="twice", requested_output_names=["twice"], inputs=[on_gpu("x", floats.reshape(shape))],
                    preferred_memory=pb_utils.PreferredMemory(pb_utils.TRITONSERVER_MEMORY_GPU, 0))
                answer = inner.exec()
                assert not answer.has_error(), answer.error().message()
                got = pb_utils.get_output_tensor_by_name(answer, "twice")
                assert not got.is_cpu()
                y = on_gpu("y", read(got)[0].reshape(shape))`,
    ),
    config: config("no"),
  },
};

describe.skipIf(cCompiler === undefined || !hasPython)(
  `tensors on a GPU of Python models${withoutCompiler}${withoutPython}`,
  () => {
    let home: Awaited<ReturnType<typeof openCudaHome>>;
    let cuda: CudartState;
    let recording: RecordingLibrary;
    let failing: Record<string, string>;
    let server: PythonServer;

    beforeAll(async () => {
      home = await openCudaHome();
      cuda = cudartState(home.library);
      failing = {};
      recording = recordingLibrary({ providers: ["CUDAExecutionProvider"], failing });
      server = await PythonServer.start(models, {
        allowClientSharedMemory: true,
        extensions: [gpu()],
        security: { restrictedEndpoints: [] },
      });
      for (const name of ["twice", "again"]) {
        server.triton.bind({
          modelName: name,
          inferFunc: onnxruntime({
            model: matrixOnnx(),
            library: recording.library,
            executionProviders: ["cuda"],
            onWarning: () => {},
          }),
          config: { maxBatchSize: 8 },
        });
      }
      for (const name of Object.keys(models)) {
        server.triton.bindEnsemble({
          modelName: `${name}_between`,
          inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
          outputs: [
            { name: "y", dtype: "FP32", shape: [4] },
            { name: "facts", dtype: "FP32", shape: [6] },
          ],
          steps: [
            { modelName: "twice", inputMap: { x: "x" }, outputMap: { twice: "a" } },
            { modelName: name, inputMap: { x: "a" }, outputMap: { y: "b", facts: "facts" } },
            { modelName: "again", inputMap: { x: "b" }, outputMap: { twice: "y" } },
          ],
          config: { maxBatchSize: 8 },
        });
      }
      await server.triton.ready();
      // Six processes of Python start.
    }, 300_000);
    afterAll(async () => {
      await server[Symbol.asyncDispose]();
      expect(cuda.counts()).toMatchObject({ gpu: 0, pinned: 0 });
      recording[Symbol.dispose]();
      await home[Symbol.asyncDispose]();
    });
    beforeEach(() => cuda.fail(0, 0));

    const details = (name: string) => {
      const model = serviceOf(server.triton).model(name, "") as object as ModelVersion;
      return model.instances.instances[0]!.executor.details!;
    };
    const ask = async (name: string, ...x: number[]) => {
      const answer = await server.triton.infer<string>(name, { x: [x] });
      const numbers = (tensor: unknown) => [...(tensor as NdArray<Float32Array>).data];
      return { y: numbers(answer.y), facts: numbers(answer.facts) };
    };

    it("come from an ONNX model and go to the next without a copy to the CPU", async () => {
      const before = { first: details("twice"), last: details("again") };
      for (let i = 0; i < 5; i++) {
        const { y, facts } = await ask("adds_between", i, 1, 2, 3);
        expect(y).toEqual([4 * i + 2, 6, 10, 14]);
        // On the GPU 0; the process has copied each answer on the GPU, nothing over the CPU, and has freed all before.
        expect(facts).toEqual([0, 2, 0, 0, i, i]);
      }
      expect(details("adds")).toMatchObject({ gpuTensorsToProcess: "5", gpuTensorsFromProcess: "5" });
      const copies = (name: "copiesToDevice" | "copiesFromDevice", of: typeof before.first) =>
        Number(of[name]);
      expect(copies("copiesFromDevice", details("twice"))).toBe(copies("copiesFromDevice", before.first));
      expect(copies("copiesToDevice", details("again"))).toBe(copies("copiesToDevice", before.last));
    });

    it("are in memory of the CPU by default, as in Triton", async () => {
      expect(await ask("on_cpu_between", 1, 2, 3, 4)).toMatchObject({
        y: [6, 10, 14, 18],
        facts: [1, 1, 0, 0, 0, 0],
      });
      expect(details("on_cpu")).not.toHaveProperty("gpuTensorsToProcess");
    });

    it("are in memory of the CPU where they came from there", async () => {
      const { y, facts } = await ask("adds", 1, 2);
      expect([y, facts.slice(0, 3)]).toEqual([
        [2, 3],
        [1, 1, 0],
      ]);
    });

    it("are not arrays of numpy, with Triton's text", async () => {
      expect(await outcomeOf(ask("refuses_between", 1, 2, 3, 4))).toContain(
        "Tensor is stored in GPU and cannot be converted to NumPy.",
      );
    });

    it("belong to the server: a process that dies with some of them takes nothing along", async () => {
      expect((await ask("dies_between", 1, 1, 1, 1)).y).toEqual([6, 6, 6, 6]);
      for (let i = 0; i < 3; i++) {
        expect(await outcomeOf(ask("dies_between", -1, 1, 1, 1))).toContain(
          "is not healthy. It exited with code 3",
        );
        expect((await ask("dies_between", 2, 1, 1, 1)).y).toEqual([10, 6, 6, 6]);
      }
      expect((await ask("adds_between", 1, 1, 1, 1)).y).toEqual([6, 6, 6, 6]);
    });

    it("are inputs and outputs of calls of other models", async () => {
      const { y, facts } = await ask("calls_between", 1, 2, 3, 4);
      expect([y, facts.slice(0, 4)]).toEqual([
        [8, 16, 24, 32],
        [0, 2, 0, 0],
      ]);
    });

    it("keep apart when many are sent at once", async () => {
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, i) => ask("adds_between", i, 0, 0, 0)),
      );
      expect(answers.map(({ y }) => y)).toEqual(Array.from({ length: 60 }, (_, i) => [4 * i + 2, 2, 2, 2]));
    });

    it("fail with CUDA's words if they cannot be copied, and the next request succeeds", async () => {
      await ask("adds_between", 1, 1, 1, 1);
      cuda.fail(46, 0);
      expect(await outcomeOf(ask("adds_between", 1, 1, 1, 1))).toContain(
        "all CUDA-capable devices are busy or unavailable (CUDA error 46)",
      );
      cuda.fail(0, 0);
      expect((await ask("adds_between", 1, 1, 1, 1)).y).toEqual([6, 6, 6, 6]);
    });

    it("come from CUDA shared memory of a client without a copy to the CPU", async () => {
      const { sharedMemory } = serviceOf(server.triton);
      const library = requireKoffi().load(home.library);
      const call = (name: string, parameters: string[]) =>
        library.func(name, "int", parameters) as (...args: unknown[]) => number;
      const { address } = requireKoffi();
      const word = new BigUint64Array(1);
      expect(call("cudaMalloc", ["uint64", "uint64"])(address(word), 64)).toBe(0);
      const memory = word[0]!;
      const rawHandle = new Uint8Array(64);
      expect(call("cudaIpcGetMemHandle", ["uint64", "uint64"])(address(rawHandle), memory)).toBe(0);
      const values = Float32Array.of(1, 2, 3, 4);
      call("cudaMemcpy", ["uint64", "uint64", "uint64", "int"])(memory + 16n, address(values), 16, 4);
      sharedMemory.registerCuda("region", { rawHandle, deviceId: 0, byteSize: 64 });
      const { addresses } = await server.triton.serve({ frontends: [http({ port: 0 })] });
      const { url } = addresses.http!;
      const infer = async (model: string, byteSize = 16) => {
        const parameters = {
          shared_memory_region: "region",
          shared_memory_byte_size: byteSize,
          shared_memory_offset: 16,
        };
        const x = { name: "x", datatype: "FP32", shape: [1, 4], parameters };
        const before = { ...cuda.counts(), passed: Number(details("adds").gpuTensorsToProcess) };
        const body = JSON.stringify({ inputs: [x] });
        const answer = await fetch(`${url}/v2/models/${model}/infer`, { method: "POST", body });
        const json = (await answer.json()) as {
          readonly error?: string;
          readonly outputs?: { readonly name: string; readonly data: number[] }[];
        };
        const after = { ...cuda.counts(), passed: Number(details("adds").gpuTensorsToProcess) };
        const data = (name: string) => json.outputs?.find((output) => output.name === name)?.data;
        const toProcess = after.passed - before.passed;
        return {
          error: json.error,
          y: data("y"),
          facts: data("facts")?.slice(0, 3),
          toProcess,
          onGpu: after.gpuCopies - before.gpuCopies,
          toCpu: after.hostCopies - before.hostCopies,
        };
      };
      // One copy of the input on the GPU; the answer goes to the client over the CPU.
      expect(await infer("adds")).toMatchObject({
        y: [2, 3, 4, 5],
        facts: [0, 2, 0],
        toProcess: 1,
        onGpu: 1,
        toCpu: 1,
      });
      expect(await infer("on_cpu")).toMatchObject({ y: [2, 3, 4, 5], facts: [1, 1, 0], onGpu: 0, toCpu: 1 });
      expect((await infer("adds", 12)).error).toMatch(/12|16/);
      const many = Array.from({ length: 10 }, () => infer("adds"));
      sharedMemory.unregisterCuda("region");
      for (const { error, y } of await Promise.all(many)) {
        if (error === undefined) expect(y).toEqual([2, 3, 4, 5]);
        else expect(error).toContain("Unable to find shared memory region");
      }
      call("cudaFree", ["uint64"])(memory);
    });

    it("stay unchanged as long as the model keeps them, and come over the CPU when the pool is full", async () => {
      for (let i = 1; i <= 40; i++) {
        const outcome = await outcomeOf(ask("keeps_between", i, 1, 2, 3));
        // The pool has 64 MiB, of which each tensor takes 2. Then the model gets memory of the CPU, which it cannot read.
        if (outcome === "done") continue;
        expect(i).toBeGreaterThan(20);
        expect(outcome).toContain("array_interface");
      }
      expect(server.lines.join("\n")).toContain("the pool of memory of GPU 0 has no room");
      // It lets all of them go.
      await outcomeOf(ask("keeps_between", -1, 1, 2, 3));
    });
  },
);

describe.skipIf(!hasPython)(`a Python model that wants tensors on a GPU${withoutPython}`, () => {
  it("gets them on the CPU without CUDA, and the log says why", async () => {
    await using server = await PythonServer.start({
      adds: {
        code: modelClass(`def execute(self, requests):
    return [y(x_of(request) + 1) for request in requests]`)
          .replaceAll('"X"', '"x"')
          .replaceAll('"Y"', '"y"'),
        config: config("no"),
      },
    });
    const x = Tensor.fromElements("FP32", [1, 1], Float32Array.of(1));
    const { y } = await server.triton.infer<string>("adds", { x });
    expect([...(y as NdArray<Float32Array>).data]).toEqual([2]);
  });
});
