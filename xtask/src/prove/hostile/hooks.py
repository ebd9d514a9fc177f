"""Counts the calls of a schemathesis run, steers some of them past the first guard, and ends the run in time.

The environment says how many calls are wanted, where the counts go, and what exists at the broker.
"""

import atexit
import collections
import json
import os
import threading

import schemathesis

WANTED = int(os.environ["HOSTILE_CALLS"])
REPORT = os.environ["HOSTILE_REPORT"]
CONVERSATION = os.environ["HOSTILE_CONVERSATION"]
KEPT_MAX = 20

lock = threading.Lock()
begun = 0
answered = collections.Counter()
addresses = collections.Counter()
broken = []


def report():
    with open(REPORT, "w", encoding="utf-8") as file:
        statuses = {str(status): times for status, times in answered.items()}
        counts = {"begun": begun, "answered": sum(answered.values()), "statuses": statuses, "addresses": addresses}
        json.dump({**counts, "broken": broken}, file)


atexit.register(report)


@schemathesis.hook
def before_load_schema(context, raw_schema):
    for path, operations in raw_schema["paths"].items():
        for method in operations.keys() & {"get", "put", "post", "patch", "delete"}:
            addresses[f"{method.upper()} {path}"] = 0


@schemathesis.hook
def before_call(context, case, kwargs):
    global begun
    with lock:
        # Calls under way on other threads are begun and get no answer any more, so the run ends between calls.
        if begun >= WANTED and begun == sum(answered.values()):
            report()
            os._exit(0)
        begun += 1


@schemathesis.hook
def after_call(context, case, response):
    with lock:
        answered[response.status_code] += 1
        addresses[case.operation.label] += 1
        if response.status_code in (500, 502) and len(broken) < KEPT_MAX:
            body = response.content[:200].decode("utf-8", "replace")
            broken.append(f"{case.method} {case.formatted_path}: {response.status_code} {body}")


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    # Most invented names end at the first look-up; three of four calls shall get behind it.
    for name, real in (("mesh", "home"), ("id", CONVERSATION)):
        value = (path_parameters or {}).get(name)
        if isinstance(value, str) and len(value) % 4 != 1:
            path_parameters[name] = real
    return path_parameters


@schemathesis.hook
def map_query(context, query):
    # A call that waits for news holds up all that come after it.
    if isinstance((query or {}).get("wait"), int):
        query["wait"] = min(query["wait"], 1)
    return query


@schemathesis.hook
def map_body(context, body):
    # A body with ten invented fields is refused for one of them. A third stays as invented, a third keeps one field,
    # a third is a plain message, so that the rules behind the shape are met too.
    if not isinstance(body, dict) or not ("body" in body or "message" in body):
        return body
    size = len(json.dumps(body, default=str))
    if size % 3 == 0:
        return body
    text = body.get("body") if isinstance(body.get("body"), str) else "x"
    plain = {"body": text, "expects_input": size % 2 == 0}
    if context.operation.path.startswith("/v1/meshes"):
        plain["to"] = ("#general", "@me", "@nobody", "#new")[size % 4]
    if size % 3 == 1:
        names = sorted(name for name in body if name not in ("body", "message", "to"))
        if names:
            name = names[size % len(names)]
            plain[name] = body[name]
    return plain
