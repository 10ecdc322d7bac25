"""Tables of records: ratios with their spread, and no times that contradict them."""

from __future__ import annotations

import re

from liere.bench.race import Race
from liere.bench.tables import make_tables

# A machine that slows down between rounds: visionllama is faster in two of three rounds, but its median is slower.
TIMES = {"absolute": [1.0, 2.0, 2.1], "visionllama": [0.9, 2.2, 2.09], "none": [1.0, 1.0, 2.1]}


def step_record() -> dict:
    race = Race("absolute", TIMES)
    rows = [
        {"situation": "tiny", "model": name, "rounds": 3}
        | {
            part: {"seconds": race.times(name).as_dict(), "ratio": race.ratio(name).as_dict()}
            for part in ("train", "inference")
        }
        for name in TIMES
    ]
    return {"question": "step", "rounds": 3, "notes": [], "rows": rows}


def test_times_are_those_of_the_baseline_and_ratios_have_quartiles():
    (table,) = make_tables(step_record())
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["absolute"] == ["1 = 2.00 s"] * 2
    assert rows["visionllama"] == ["1.00 [0.95-1.05]"] * 2
    assert rows["none"] == ["1.00 [0.75-1.00]"] * 2
    others = " ".join(cell for name in ("visionllama", "none") for cell in rows[name])
    assert not re.search(r"\d m?s\b", others)


def test_the_rule_stands_below_the_table():
    (table,) = make_tables(step_record())
    legend = " ".join(table.legend)
    assert "Ratios are taken within a round" in legend
    assert "median [quartiles] over 3 rounds" in legend
    assert "Absolute times are given for the baseline only" in legend


def test_points_are_compared_with_no_positions_and_with_planes():
    race = Race("none", {"none": [1.0, 2.0], "rope_mixed": [1.1, 2.2], "liere8": [1.65, 3.3]})
    timed = [
        {"situation": "clouds", "model": name, "rounds": 2, "seconds": race.times(name).as_dict()}
        | {"ratio": race.ratio(name).as_dict(), "to_rope_mixed": race.ratio(name, to="rope_mixed").as_dict()}
        for name in race.seconds
    ]
    weighed = [
        {"situation": "tokens", "model": "liere8", "rounds": 1, "used_bytes": 2**31, "memory": {"median": 2.0}},
    ]
    times, memory = make_tables({"question": "points", "rounds": 2, "notes": ["A note."], "rows": timed + weighed})
    assert times.rows == [
        ["none", "1 = 1.50 s", ""],
        ["rope_mixed", "1.10 [1.10-1.10]", "1.00 [1.00-1.00]"],
        ["liere8", "1.65 [1.65-1.65]", "1.50 [1.50-1.50]"],
    ]
    assert memory.rows == [["liere8", "2.00 GB", "2.00"]]
    assert "A note." in times.legend
