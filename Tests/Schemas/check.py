"""Checks the schemas themselves, and what the program writes against them.

Usage: check.py PATH_OF_UNIFIEDCHAT
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from jsonschema import Draft202012Validator

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "Schemas"
failures = []


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


def expect(condition, text):
    if not condition:
        failures.append(text)


def check_schemas():
    """Every schema is a valid 2020-12 schema."""
    count = 0
    for path in sorted(SCHEMAS.rglob("*.schema.json")):
        Draft202012Validator.check_schema(load(path))
        count += 1
    return count


def check_records(program):
    """Every record of the built-in sample fits, and a record with one member spoilt does not."""
    validator = Draft202012Validator(load(SCHEMAS / "records.schema.json"))
    output = subprocess.run([program, "seed", "--to", "-"], check=True, capture_output=True).stdout
    records = [json.loads(line) for line in output.splitlines()]
    for number, record in enumerate(records, 1):
        for error in validator.iter_errors(record):
            expect(False, f"sample record {number}: {error.message[:200]}")
        expect(not validator.is_valid({**record, "surprise": 1}), f"sample record {number}: takes any member")
    return len(records)


def check_report(program):
    """A report of the conformance suite fits, whether its cases pass, are skipped or differ as declared."""
    validator = Draft202012Validator(load(SCHEMAS / "conformance-report.schema.json"))
    cases = ["SEND-01", "CONN-09", "MEMB-03", "LIMIT-01"]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "report.json"
        command = [program, "conformance", "--adapter", "ideal,openim", "--json", str(path)]
        for case in cases:
            command += ["--case", case]
        # A case that fails is another test's business; its report has to fit all the same.
        subprocess.run(command, capture_output=True)
        report = load(path)
    for error in validator.iter_errors(report):
        expect(False, f"conformance report: {error.message[:200]}")
    results = [case for adapter in report["adapters"] for case in adapter["cases"]]
    expect(len(results) == 2 * len(cases), "conformance report: every case of every adapter")
    return len(results)


def check_samples():
    """Frames beside a schema (`NAME.schema.json` and `NAME.samples.jsonl`) fit it."""
    count = 0
    for samples in sorted((ROOT / "Tests").rglob("*.samples.jsonl")):
        name = samples.name.removesuffix(".samples.jsonl")
        schema = SCHEMAS / samples.parent.name / f"{name}.schema.json"
        validator = Draft202012Validator(load(schema))
        for number, line in enumerate(samples.read_text(encoding="utf-8").splitlines(), 1):
            for error in validator.iter_errors(json.loads(line)):
                expect(False, f"{samples.relative_to(ROOT)}:{number}: {error.message[:200]}")
            count += 1
    return count


def main():
    program = sys.argv[1]
    counts = (check_schemas(), check_records(program), check_report(program), check_samples())
    for failure in failures:
        print(failure, file=sys.stderr)
    print("schemas: %d valid, %d sample records, %d verdicts and %d recorded frames checked, %d failures" % (*counts, len(failures)))
    sys.exit(1 if failures else 0)


main()
