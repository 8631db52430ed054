"""Look-ups by name in requests, responses and configurations."""


def _named(tensors, name):
    for tensor in tensors:
        if tensor.name() == name:
            return tensor
    return None


def get_input_tensor_by_name(inference_request, name):
    """Returns the input of a request with this name, or None."""
    return _named(inference_request.inputs(), name)


def get_output_tensor_by_name(inference_response, name):
    """Returns the output of a response with this name, or None."""
    return _named(inference_response.output_tensors(), name)


def _configured(tensors, name):
    for tensor in tensors:
        if tensor["name"] == name:
            return tensor
    return None


def get_input_config_by_name(model_config, name):
    """Returns the configuration of an input from a model's configuration (a dict), or None."""
    return _configured(model_config.get("input", ()), name)


def get_output_config_by_name(model_config, name):
    """Returns the configuration of an output from a model's configuration (a dict), or None."""
    return _configured(model_config.get("output", ()), name)


def using_decoupled_model_transaction_policy(model_config):
    """Returns whether the model of a configuration (a dict) may send any number of responses."""
    return model_config.get("model_transaction_policy", {}).get("decoupled", False)
