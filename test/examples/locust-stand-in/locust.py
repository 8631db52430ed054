"""
The part of Locust that a locustfile uses, for tests: runs each task of each user a number of times, one after the other,
and prints the requests by name as JSON.

    python3 locust.py <locustfile> --host <url> [options of the file]
"""

import argparse
import collections
import importlib.util
import json
import sys
import types
import urllib.error
import urllib.request

USERS = 2
RUNS = 5


class _Hook:
    def __init__(self):
        self.listeners = []

    def add_listener(self, listener):
        self.listeners.append(listener)
        return listener


events = types.SimpleNamespace(init_command_line_parser=_Hook())


def between(_least, _most):
    return None


def task(weight):
    def mark(function):
        function.locust_task_weight = weight
        return function

    return mark


class Response:
    def __init__(self, status_code, body, counts):
        self.status_code, self.content, self._counts = status_code, body, counts

    @property
    def text(self):
        return self.content.decode()

    def json(self):
        return json.loads(self.content)

    def failure(self, message):
        self._counts["failures"].append(message)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


class Client:
    def __init__(self, host, stats):
        self.host, self.stats = host, stats

    def get(self, path, name=None):
        return self._send(path, name, None, {})

    def post(self, path, data=None, headers=None, name=None, catch_response=False):
        assert catch_response
        return self._send(path, name, data, headers or {})

    def _send(self, path, name, data, headers):
        counts = self.stats[name or path]
        counts["requests"] += 1
        request = urllib.request.Request(self.host + path, data=data, headers=headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return Response(answer.status, answer.read(), counts)
        except urllib.error.HTTPError as error:
            return Response(error.code, error.read(), counts)


class HttpUser:
    def __init__(self, environment, client):
        self.environment, self.client = environment, client


def main():
    # The locustfile imports this module by its name.
    locust = sys.modules["locust"] = sys.modules["__main__"]
    spec = importlib.util.spec_from_file_location("locustfile", sys.argv[1])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    for listener in locust.events.init_command_line_parser.listeners:
        listener(parser)
    options = parser.parse_args(sys.argv[2:])
    stats = collections.defaultdict(lambda: {"requests": 0, "failures": []})
    classes = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, HttpUser) and one is not HttpUser]
    for user_class in classes:
        tasks = [one for one in vars(user_class).values() if hasattr(one, "locust_task_weight")]
        for _ in range(USERS):
            user = user_class(types.SimpleNamespace(parsed_options=options), Client(options.host, stats))
            user.on_start()
            for run in tasks * RUNS:
                run(user)
    print(json.dumps(stats))


if __name__ == "__main__":
    main()
