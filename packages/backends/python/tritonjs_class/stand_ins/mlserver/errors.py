"""Errors that models raise."""


class MLServerError(Exception):
    def __init__(self, message, status_code=500):
        super().__init__(message)
        self.status_code = status_code


class InferenceError(MLServerError):
    def __init__(self, message):
        super().__init__(message, 400)
