"""The base class of models."""

from . import codecs


class MLModel:
    def __init__(self, settings):
        self._settings = settings
        self.ready = False

    @property
    def name(self):
        return self._settings.name

    @property
    def version(self):
        return self._settings.version

    @property
    def settings(self):
        return self._settings

    async def load(self):
        return True

    async def unload(self):
        return True

    async def predict(self, payload):
        raise NotImplementedError("predict() method not implemented")

    def decode(self, request_input, default_codec=None):
        codec = default_codec or codecs.codec_of(request_input)
        return codec.decode_input(request_input)

    def decode_request(self, inference_request, default_codec=None):
        if default_codec is not None:
            return default_codec.decode_request(inference_request)
        return {one.name: self.decode(one) for one in inference_request.inputs}

    def encode(self, payload, request_output, default_codec=None):
        codec = default_codec or codecs.codec_for(payload)
        return codec.encode_output(request_output.name, payload)

    def encode_response(self, payload, default_codec=None):
        return codecs.response_of(payload, self.name, self.version, default_codec)
