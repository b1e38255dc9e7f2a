"""Runs every rule's own true and false examples through a shield. Knows no file and no console."""

from dataclasses import dataclass

from gateway.shield.engine import Shield


@dataclass(frozen=True, slots=True)
class ExampleFailure:
    """An example that does not hold. must_match: whether it is one of `match` (else one of `pass`)."""

    rule: str
    example: str
    must_match: bool


@dataclass(frozen=True, slots=True)
class ExampleReport:
    """How many examples of how many rules were run, and which failed."""

    rules: int
    examples: int
    failures: tuple[ExampleFailure, ...]


def run_examples(shield: Shield) -> ExampleReport:
    """Scan every `match` and `pass` of every rule, in each direction the rule is for."""
    failures = []
    examples = 0
    for rule in shield.rules:
        for example, must_match in [(text, True) for text in rule.match] + [(text, False) for text in rule.passes]:
            examples += 1
            for direction in rule.direction:
                matched = any(one.rule == rule.id for one in shield.scan(example, direction).detections)
                if matched is not must_match:
                    failures.append(ExampleFailure(rule.id, example, must_match))
                    break
    return ExampleReport(len(shield.rules), examples, tuple(failures))
