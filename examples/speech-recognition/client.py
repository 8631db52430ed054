"""The tutorial's client: transcribes a WAV file of 16 kHz over HTTP.

    python3 client.py recordings/01.wav [localhost:8000]

Uses Triton's client where `pip install tritonclient[http] numpy` has put it, and the protocol by itself elsewhere.
"""

import array
import json
import struct
import sys
import urllib.request
import wave

MODEL = "attention_rescoring"


def with_tritonclient(client, numpy, url, samples):
    """The steps of the tutorial."""
    server = client.InferenceServerClient(url=url)
    inputs = [
        client.InferInput("WAV", [1, len(samples)], "FP32"),
        client.InferInput("WAV_LENS", [1, 1], "INT32"),
    ]
    inputs[0].set_data_from_numpy(numpy.array([samples], dtype=numpy.float32))
    inputs[1].set_data_from_numpy(numpy.array([[len(samples)]], dtype=numpy.int32))
    outputs = [client.InferRequestedOutput("TRANSCRIPTS")]
    return server.infer(MODEL, inputs, outputs=outputs).as_numpy("TRANSCRIPTS")[0][0]


def by_hand(url, samples):
    """The same request, byte for byte: a JSON header, then the tensors in binary form."""
    parts = [samples.tobytes(), struct.pack("<i", len(samples))]
    tensors = [("WAV", [1, len(samples)], "FP32"), ("WAV_LENS", [1, 1], "INT32")]
    header = json.dumps(
        {
            "inputs": [
                {"name": name, "shape": shape, "datatype": kind, "parameters": {"binary_data_size": len(part)}}
                for (name, shape, kind), part in zip(tensors, parts)
            ],
            "outputs": [{"name": "TRANSCRIPTS", "parameters": {"binary_data": True}}],
        }
    ).encode()
    headers = {"Inference-Header-Content-Length": str(len(header)), "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(f"http://{url}/v2/models/{MODEL}/infer", header + b"".join(parts), headers)
    with urllib.request.urlopen(request) as response:
        body = response.read()
        start = int(response.headers["Inference-Header-Content-Length"])
    (size,) = struct.unpack_from("<I", body, start)
    return body[start + 4 : start + 4 + size]


def main():
    path, url = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "localhost:8000"
    with wave.open(path) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (16_000, 1, 2):
            sys.exit(f"{path}: expected 16 bits, one channel and 16 kHz")
        whole = array.array("h", file.readframes(file.getnframes()))
    samples = array.array("f", (sample / 32_768 for sample in whole))
    try:
        import numpy
        import tritonclient.http
    except ImportError:
        text = by_hand(url, samples)
    else:
        text = with_tritonclient(tritonclient.http, numpy, url, samples)
    print(text.decode())


if __name__ == "__main__":
    main()
