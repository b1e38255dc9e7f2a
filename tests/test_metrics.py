"""Metrics: what is counted is rendered, in a text that Prometheus reads, within bounds."""

import re
import threading

import pytest

from gateway.metrics import FAMILIES, MOST_SERIES, Family, Metrics

SAMPLE = re.compile(
    r'[a-z_]+(\{[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(,[a-z_]+="(?:[^"\\\n]|\\["\\n])*")*\})? -?[0-9][0-9.e+-]*'
)


def lines(metrics: Metrics) -> list[str]:
    return metrics.render().splitlines()


def test_counts_add_up_by_label() -> None:
    metrics = Metrics()
    metrics.count("gateway_auth_failures_total", code="key_revoked")
    metrics.count("gateway_auth_failures_total", 2, code="key_revoked")
    metrics.count("gateway_auth_failures_total", code="invalid_api_key")
    assert 'gateway_auth_failures_total{code="key_revoked"} 3' in lines(metrics)
    assert 'gateway_auth_failures_total{code="invalid_api_key"} 1' in lines(metrics)


def test_gauge_keeps_the_last_value() -> None:
    metrics = Metrics()
    metrics.gauge("gateway_start_time_seconds", 5)
    metrics.gauge("gateway_start_time_seconds", 1.5)
    assert "gateway_start_time_seconds 1.5" in lines(metrics)


def test_histogram_buckets_are_cumulative_and_bounds_inclusive() -> None:
    metrics = Metrics((Family("x_seconds", "histogram", "x.", ("route",), (0.1, 1.0)),))
    for seconds in (0.05, 0.1, 0.5, 5):
        metrics.observe("x_seconds", seconds, route="/a")
    assert lines(metrics)[2:] == [
        'x_seconds_bucket{route="/a",le="0.1"} 2',
        'x_seconds_bucket{route="/a",le="1"} 3',
        'x_seconds_bucket{route="/a",le="+Inf"} 4',
        'x_seconds_sum{route="/a"} 5.65',
        'x_seconds_count{route="/a"} 4',
    ]


def test_counter_without_labels_starts_at_zero() -> None:
    assert "gateway_rate_limited_total 0" in lines(Metrics())


def test_every_family_has_help_and_type_and_every_line_is_well_formed() -> None:
    metrics = Metrics()
    for family in FAMILIES:
        labels = dict.fromkeys(family.labels, 'a"b\\c\nd')
        (metrics.observe if family.kind == "histogram" else metrics.count)(family.name, 0.3, **labels)
    text = metrics.render()
    assert text.endswith("\n")
    for family in FAMILIES:
        assert f"# HELP {family.name} " in text
        assert f"# TYPE {family.name} {family.kind}\n" in text
    for line in text.splitlines():
        assert line.startswith("# ") or SAMPLE.fullmatch(line), line
    assert 'code="a\\"b\\\\c\\nd"' in text


def test_combinations_of_labels_are_bounded() -> None:
    metrics = Metrics()
    for number in range(MOST_SERIES + 50):
        metrics.count("gateway_auth_failures_total", code=str(number))
    text = lines(metrics)
    assert 'gateway_auth_failures_total{code="other"} 50' in text
    assert len([line for line in text if line.startswith("gateway_auth_failures_total")]) == MOST_SERIES + 1


def test_label_values_are_bounded() -> None:
    metrics = Metrics()
    metrics.count("gateway_auth_failures_total", code="x" * 10_000)
    assert max(len(line) for line in lines(metrics)) < 200


@pytest.mark.parametrize("labels", [{}, {"code": "a", "route": "b"}])
def test_other_labels_than_the_family_has_are_a_mistake(labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="has the labels"):
        Metrics().count("gateway_auth_failures_total", **labels)


def test_counts_of_many_threads_add_up() -> None:
    metrics = Metrics()

    def work() -> None:
        for _ in range(2000):
            metrics.count("gateway_rate_limited_total")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert "gateway_rate_limited_total 8000" in lines(metrics)
