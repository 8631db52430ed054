"""
Load on a model of an inference server, for Locust (pip install locust):

    locust -f locustfile.py --host http://localhost:8000 --model adder --headless -u 20 -r 5 -t 30s

Each user reads the model's metadata once and makes inputs of its data types and shapes. Dimensions of -1 get the value
of --dim, and the batch that of --rows. Most requests carry tensors as JSON, and some in the binary form.
"""

import json
import random
import struct

from locust import HttpUser, between, events, task

# Data types by name: the format of `struct`, and what makes a value.
NUMBERS = {
    "BOOL": ("?", lambda: random.random() < 0.5),
    "UINT8": ("B", lambda: random.randrange(256)),
    "UINT16": ("H", lambda: random.randrange(1000)),
    "UINT32": ("I", lambda: random.randrange(1000)),
    "UINT64": ("Q", lambda: random.randrange(1000)),
    "INT8": ("b", lambda: random.randrange(-128, 128)),
    "INT16": ("h", lambda: random.randrange(-1000, 1000)),
    "INT32": ("i", lambda: random.randrange(-1000, 1000)),
    "INT64": ("q", lambda: random.randrange(-1000, 1000)),
    "FP32": ("f", random.random),
    "FP64": ("d", random.random),
}


@events.init_command_line_parser.add_listener
def add_options(parser):
    parser.add_argument("--model", default="adder", help="Name of the model")
    parser.add_argument("--rows", type=int, default=1, help="Rows of a request")
    parser.add_argument("--dim", type=int, default=8, help="Size of dimensions of -1")
    parser.add_argument("--text", default="How can you be", help="Value of strings")


class InferenceUser(HttpUser):
    wait_time = between(0, 0.01)

    def on_start(self):
        options = self.environment.parsed_options
        self.model = options.model
        self.text = options.text
        config = self.client.get("/v2/models/%s/config" % self.model, name="config").json()
        metadata = self.client.get("/v2/models/%s" % self.model, name="metadata").json()
        batched = config.get("max_batch_size", 0) > 0
        self.inputs = []
        for given in metadata["inputs"]:
            # The metadata has the batch as its first dimension.
            dims = given["shape"][1:] if batched else given["shape"]
            shape = ([options.rows] if batched else []) + [options.dim if dim < 0 else dim for dim in dims]
            self.inputs.append((given["name"], given["datatype"], shape))
        self.outputs = [output["name"] for output in metadata["outputs"]]

    @task(4)
    def infer_json(self):
        inputs = [
            {"name": name, "datatype": datatype, "shape": shape, "data": self.values(datatype, shape)}
            for name, datatype, shape in self.inputs
        ]
        self.infer("infer as JSON", json.dumps({"inputs": inputs}).encode(), {"Content-Type": "application/json"})

    @task(1)
    def infer_binary(self):
        inputs, blocks = [], []
        for name, datatype, shape in self.inputs:
            block = pack(datatype, self.values(datatype, shape))
            inputs.append(
                {
                    "name": name,
                    "datatype": datatype,
                    "shape": shape,
                    "parameters": {"binary_data_size": len(block)},
                }
            )
            blocks.append(block)
        header = json.dumps({"inputs": inputs}).encode()
        headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(header))}
        self.infer("infer in binary", header + b"".join(blocks), headers)

    def infer(self, name, body, headers):
        path = "/v2/models/%s/infer" % self.model
        with self.client.post(path, data=body, headers=headers, name=name, catch_response=True) as response:
            if response.status_code != 200:
                response.failure("status %d: %s" % (response.status_code, response.text[:200]))
                return
            names = [output["name"] for output in response.json()["outputs"]]
            if names != self.outputs:
                response.failure("expected the outputs %s, got %s" % (self.outputs, names))

    def values(self, datatype, shape):
        count = 1
        for dim in shape:
            count *= dim
        if datatype == "BYTES":
            return [self.text] * count
        if datatype not in NUMBERS:
            raise ValueError("model '%s' has an input of %s, which this file cannot make" % (self.model, datatype))
        return [NUMBERS[datatype][1]() for _ in range(count)]


def pack(datatype, values):
    """The binary form of a tensor: little endian numbers, or texts that follow their length."""
    if datatype == "BYTES":
        texts = [value.encode() for value in values]
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    return struct.pack("<%d%s" % (len(values), NUMBERS[datatype][0]), *values)
