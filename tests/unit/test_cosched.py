"""Co-scheduling on one machine: the strategies by hand, and what they promise."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import log
from random import Random
from statistics import NormalDist, fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.cosched import (
    EI,
    PI,
    Fastest,
    Instance,
    Knowledge,
    Learning,
    Optimal,
    Stint,
    Strategy,
    is_antitone,
    layers,
    makespan,
    optimum,
    paired_instance,
    random_instance,
    run,
    total,
    ucb,
)
from pliant.cosched.acquisition import (
    expected_improvement,
    improvement_probability,
    upper_confidence_bound,
)
from pliant.cosched.belief import Belief, Guess
from pliant.errors import BadInput, Unavailable
from pliant.model import Combination, Speeds

STRATEGIES: dict[str, Strategy] = {
    "optimal": Optimal(),
    "fcs": Fastest(),
    "pi": PI,
    "ei": EI,
    "ucb": ucb(),
}
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
often = settings(max_examples=60, deadline=None)

EXACT = 1e-6  # relative: the solver rounds


def together(text: str) -> dict[Combination, Speeds]:
    """Speeds by combination: "a.8 b.7; c1" is a and b at .8 and .7, and c alone."""
    rows = [words.split() for words in text.split(";")]
    return {frozenset(w[0] for w in row): {w[0]: float(w[1:]) for w in row} for row in rows}


def instance(volumes: str, speeds: str) -> Instance:
    found = {word[0]: float(word[1:]) for word in volumes.split()}
    return Instance(found, together("; ".join(f"{name}1" for name in found) + "; " + speeds))


def told(stints: Sequence[Stint]) -> list[tuple[str, float]]:
    return [("".join(sorted(stint.tasks)), round(stint.seconds, 6)) for stint in stints]


TWO = instance("a10 b10", "a.8 b.7")
THREE = instance("a8 b8 c3", "a1 b1; a.9 c.5; b.9 c.5; a.8 b.8 c.3")

# --- by hand ----------------------------------------------------------------------------------


def test_the_optimum_runs_a_pair_until_one_is_done_and_then_the_other_alone() -> None:
    """a is done after 10/.8 = 12.5 s, in which b has done 8.75."""
    assert told(optimum(TWO.volumes, TWO.table)) == [("ab", 12.5), ("b", 1.25)]


def test_the_optimum_keeps_a_task_company_that_would_be_left_alone() -> None:
    """All three for 10 s are 8, 8 and 3; the fastest pair leaves c to itself."""
    assert told(optimum(THREE.volumes, THREE.table)) == [("abc", 10.0)]
    assert told(run(THREE, Fastest()).stints) == [("ab", 8.0), ("c", 3.0)]


def test_fcs_runs_the_largest_sum_of_speeds_of_what_is_left() -> None:
    """Sums: ab 1.8, ac 1.7, bc 1.0. b is done after 10 s; then ac until c is, and a alone."""
    some = instance("a20 b9 c8.5", "a.9 b.9; a.85 c.85; b.5 c.5")
    ran = run(some, Fastest())
    assert told(ran.stints) == [("ab", 10.0), ("ac", 10.0), ("a", 2.5)]
    assert ran.done_s == {"b": 10.0, "c": 20.0, "a": 22.5}
    assert ran.switches == 0


def test_fcs_prefers_one_alone_to_a_pair_that_does_less() -> None:
    assert told(run(instance("a2 b3", "a.4 b.5"), Fastest()).stints) == [("a", 2.0), ("b", 3.0)]


def test_setting_tasks_aside_costs_a_switch() -> None:
    """Both at once are measured first, for a second; alone they are done sooner."""
    ran = run(instance("a10 b10", "a.4 b.4"), PI, interval_s=1.0, switch_s=5.0)
    assert told(ran.stints) == [("ab", 1.0), ("a", 9.6), ("b", 9.6)]
    assert ran.switches == 1
    assert ran.makespan_s == pytest.approx(25.2)


def test_what_was_never_measured_is_expected_between_alone_and_taking_turns() -> None:
    """Of four tasks: knots 1 at one task and 0 at five, so .75 each for two, and 1/4 for four."""
    z = NormalDist().inv_cdf(0.9)
    some, every = frozenset("ab"), frozenset("abcd")
    guesses = Belief([some, every], {}, 4, 0.9).guesses
    assert guesses[some].mean == pytest.approx(1.5)
    assert guesses[some].deviation == pytest.approx(2**0.5 * 0.25 / z)
    assert guesses[every].mean == pytest.approx(1.0)


def test_a_measured_superset_and_subset_are_the_knots_between_which_is_interpolated() -> None:
    """a: 1 alone, .6 with two others, so .8 with one: half way, where nothing is known of b."""
    z = NormalDist().inv_cdf(0.95)
    belief = Belief([frozenset("a"), frozenset("ab"), frozenset("abc")], {}, 3, 0.95)
    belief.learn(frozenset("abc"), {"a": 0.6, "b": 0.4, "c": 0.5})
    guess = belief.guesses[frozenset("ab")]
    assert guess.mean == pytest.approx(0.8 + 0.7)
    assert guess.deviation == pytest.approx((0.2**2 + 0.3**2) ** 0.5 / z)
    assert belief.guesses[frozenset("abc")] == Guess(1.5)
    assert belief.guesses[frozenset("a")] == Guess(1.0)


def test_the_constraint_holds_against_either_knot_with_the_given_probability() -> None:
    table = together("a.6 b1 c1")
    guess = Belief([frozenset("ab")], table, 3, 0.9).guesses[frozenset("ab")]
    assert NormalDist(guess.mean - 1.0, guess.deviation).cdf(1.0) == pytest.approx(0.9)
    assert NormalDist(guess.mean - 1.0, guess.deviation).cdf(0.6) == pytest.approx(0.1)


def test_where_measures_contradict_the_constraint_the_smaller_combination_counts() -> None:
    table = together("a.5 b.5; a.9 b.9 c.9")
    guess = Belief([frozenset("ab")], table, 3, 0.95).guesses[frozenset("ab")]
    assert guess == Guess(1.0)


def test_what_is_learnt_step_by_step_is_what_is_known_at_once() -> None:
    some = random_instance(5, (0.0, 0.4), Random(3))  # noqa: S311  # no secret
    step_by_step = Belief(some.table, {}, 5, 0.95)
    for tasks, speeds in some.table.items():
        step_by_step.learn(tasks, speeds)
    at_once = Belief(some.table, some.table, 5, 0.95)
    assert step_by_step.guesses == at_once.guesses
    exact = {tasks: pytest.approx(total(speeds)) for tasks, speeds in some.table.items()}
    assert {tasks: guess.mean for tasks, guess in at_once.guesses.items()} == exact


@pytest.mark.parametrize("probability", [0.0, 0.5, 1.0, 2.0])
def test_a_probability_that_says_nothing_is_refused(probability: float) -> None:
    with pytest.raises(BadInput, match=r"^p: .*: a probability above 0.5 and below 1 is expected"):
        Belief([], {}, 1, probability)


def test_the_acquisition_functions_are_the_textbooks() -> None:
    """μ = 1.5, σ = .3, f* = 1.2: z = 1, Φ(1) = .8413, φ(1) = .2420."""
    guess = Guess(1.5, 0.3)
    assert improvement_probability(guess, 1.2) == pytest.approx(0.8413, abs=1e-4)
    assert expected_improvement(guess, 1.2) == pytest.approx(0.3 * (0.8413 + 0.2420), abs=1e-4)
    assert upper_confidence_bound(2.0)(guess, 1.2) == pytest.approx(2.1)


def test_what_was_measured_has_their_limits() -> None:
    best, less, more = Guess(1.2), Guess(1.1), Guess(1.3)
    assert [improvement_probability(one, 1.2) for one in (less, best, more)] == [0.0, 0.5, 1.0]
    assert [expected_improvement(one, 1.2) for one in (less, best)] == [0.0, 0.0]
    assert expected_improvement(more, 1.2) == pytest.approx(0.1)


def promised(strategy: Strategy, tasks: str, table: str) -> str:
    knowledge = Knowledge(dict.fromkeys(tasks, 10.0), together(table))
    return "".join(sorted(next(strategy.ranked(knowledge)).tasks))


def test_pi_stays_with_what_is_known_where_ei_and_ucb_try_what_may_be_better() -> None:
    """Three at once are expected to do less than the four that were measured, but not surely."""
    table = "a.5 b.5 c.5 d.5; a.95 b.95; a.7 c.7; a.7 d.7; b.7 c.7; b.7 d.7; c.7 d.7"
    chosen = [promised(strategy, "abcd", table) for strategy in (PI, EI, ucb())]
    guesses = Knowledge(dict.fromkeys("abcd", 10.0), together(table)).belief(0.95, 3).guesses
    means = {"".join(sorted(s)): round(guess.mean, 3) for s, guess in guesses.items() if len(s) > 2}
    assert means == {"abc": 1.8, "abd": 1.8, "acd": 1.8, "bcd": 1.8, "abcd": 2.0}
    assert chosen == ["abcd", "abc", "abc"]


def test_all_at_once_are_measured_first_where_that_can_be() -> None:
    assert promised(PI, "abc", "a1") == "abc"
    assert promised(Learning(improvement_probability, ends=False), "abc", "a1") == "ab"
    few = Knowledge(dict.fromkeys("abc", 1.0), fits=lambda tasks: len(tasks) <= 2)
    assert sorted(next(PI.ranked(few)).tasks) == ["a", "b"]


def test_of_equal_ones_what_runs_stays_then_more_come_before_fewer_then_names() -> None:
    table = together("a.9 b.9; b.9 c.9; a.6 b.6 c.6")
    knowledge = Knowledge(dict.fromkeys("abc", 1.0), table)
    first = [
        sorted(next(Fastest().ranked(knowledge, frozenset(now))).tasks) for now in ("", "bc", "a")
    ]
    assert first == [["a", "b", "c"], ["b", "c"], ["a", "b", "c"]]


def test_many_tasks_are_combined_by_a_few_only() -> None:
    names = [f"t{number:02}" for number in range(16)]
    knowledge = Knowledge(dict.fromkeys(names, 1.0))
    assert len(knowledge.candidates(2)) == 16 + 16 * 15 // 2
    knowledge.done("t00")
    assert len(knowledge.candidates(2)) == 2**15 - 1


def test_without_the_solver_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(Unavailable) as raised:
        run(TWO, Optimal())
    assert str(raised.value) == (
        "the optimum needs scipy's solver: pip install 'pliant[solvers]' is expected"
    )


# --- the constraint, and the bound of FCS -------------------------------------------------------


def test_the_constraint_is_seen_to_hold_or_not() -> None:
    assert is_antitone(THREE.table)
    assert not is_antitone(together("a1; b1; c1; a.5 b.5; a.6 b.4 c.4"))


def test_with_the_sign_that_the_paper_prints_fcs_has_no_bound() -> None:
    """c speeds a and b up, and is done too soon where all three run: here 50 × the optimum."""
    table = together(
        "a1; b1; c1; a1 b1; a100 c1; b1 c1; a100 b100 c100"  # no task is slower in more company
    )
    some = Instance({"a": 100.0, "b": 1.0, "c": 1.0}, table)
    assert not is_antitone(table)
    best = makespan(optimum(some.volumes, table))
    assert best <= 2.0
    assert run(some, Fastest()).makespan_s > 40 * best


def test_fcs_takes_more_than_twice_the_optimum_of_tasks_in_layers() -> None:
    """The optimum is all at once for 1 s. FCS: 7 tasks of 4/7, 2 of 1/2, 1 of 1, one after another."""
    some = layers((7, 2, 1), loss=0.001)
    assert is_antitone(some.table)
    best = makespan(optimum(some.volumes, some.table))
    ran = run(some, Fastest())
    assert best == pytest.approx(1.0)
    assert [len(stint.tasks) for stint in ran.stints] == [7, 2, 1]
    assert ran.makespan_s == pytest.approx(4 / 7 + 1 / 2 + 1, abs=0.002)
    assert 2 * best < ran.makespan_s <= bound(some) * best


def bound(some: Instance) -> float:
    """1 + ln F_1, F_1 being the largest sum of speeds: what FCS takes at most of the optimum."""
    return 1 + log(max(total(speeds) for speeds in some.table.values()))


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """Random instances, as they are compared: by their seed."""
    low = draw(st.sampled_from([0.0, 0.05, 0.1, 0.3]))
    width = draw(st.sampled_from([0.05, 0.1, 0.2, 0.5]))
    tasks, seed = draw(st.integers(1, 6)), draw(st.integers(0, 10**6))
    return random_instance(tasks, (low, low + width), Random(seed))  # noqa: S311  # no secret


@st.composite
def wild_instances(draw: st.DrawFn) -> Instance:
    """Instances in which every number may be the one that hurts most."""
    rng = draw(st.randoms(use_true_random=False))
    most = draw(st.sampled_from([0.1, 0.5, 1.0]))
    return random_instance(draw(st.integers(1, 5)), (0.0, most), rng, (0.1, 100.0))


@often
@given(some=instances())
def test_fcs_takes_at_most_twice_the_optimum_of_random_tasks(some: Instance) -> None:
    assert is_antitone(some.table)
    best = makespan(optimum(some.volumes, some.table))
    assert run(some, Fastest()).makespan_s <= 2 * best * (1 + EXACT)


@often
@given(some=wild_instances())
def test_fcs_keeps_the_bound_that_is_proved(some: Instance) -> None:
    assert is_antitone(some.table)
    best = makespan(optimum(some.volumes, some.table))
    assert run(some, Fastest()).makespan_s <= bound(some) * best * (1 + EXACT)


@every_strategy
@often
@given(some=wild_instances())
def test_every_task_is_done_and_never_sooner_than_at_the_optimum(
    strategy: Strategy, some: Instance
) -> None:
    ran = run(some, strategy)
    assert ran.done_s.keys() == some.volumes.keys()
    assert max(ran.done_s.values()) == ran.makespan_s
    best = makespan(optimum(some.volumes, some.table))
    assert ran.makespan_s >= best * (1 - EXACT)
    if isinstance(strategy, Optimal):
        assert ran.makespan_s == pytest.approx(best, rel=EXACT)
    done = dict.fromkeys(some.volumes, 0.0)
    for stint in ran.stints:
        for task, speed in some.table[stint.tasks].items():
            done[task] += speed * stint.seconds
    assert done == pytest.approx(some.volumes, rel=EXACT)


@every_strategy
@often
@given(some=wild_instances())
def test_the_same_tasks_are_run_the_same_way_in_few_steps(
    strategy: Strategy, some: Instance
) -> None:
    ran = run(some, strategy)
    assert ran == run(some, strategy)
    assert len(ran.stints) <= len(some.table) + len(some.volumes)


@often
@given(some=instances())
def test_a_switch_costs_what_it_costs(some: Instance) -> None:
    free, paid = run(some, EI), run(some, EI, switch_s=3.0)
    assert paid.stints == free.stints
    assert paid.makespan_s == pytest.approx(free.makespan_s + 3.0 * free.switches)


def mean_ratio(strategy: Strategy, tasks: int, decrement: tuple[float, float]) -> float:
    """The mean of makespan over optimum, of 12 instances."""
    rngs = map(Random, range(12))
    some = [random_instance(tasks, decrement, rng) for rng in rngs]
    best = [makespan(optimum(one.volumes, one.table)) for one in some]
    return fmean(run(one, strategy).makespan_s / b for one, b in zip(some, best, strict=True))


@pytest.mark.parametrize("decrement", [(0.0, 0.05), (0.1, 0.3), (0.2, 0.5), (0.0, 0.5)])
def test_pi_is_no_worse_than_ei_and_ucb_over_most_speed_up_rates(
    decrement: tuple[float, float],
) -> None:
    """Figure 1 of the paper; of seven tasks there are 127 combinations to search."""
    by_pi, by_ei, by_ucb = (mean_ratio(one, 7, decrement) for one in (PI, EI, ucb()))
    assert by_pi <= min(by_ei, by_ucb) * (1 + EXACT)


@pytest.mark.parametrize(("tasks", "decrement"), [(4, (0.1, 0.3)), (7, (0.0, 0.2))])
def test_pi_stops_too_soon_where_a_search_is_cheap_or_speeds_differ_much(
    tasks: int, decrement: tuple[float, float]
) -> None:
    """Of four tasks there are 15 combinations only; and where some decrements are near 0 and others
    are not, a few combinations are far better than the spline between the ends expects."""
    by_pi, by_ei, by_ucb = (mean_ratio(one, tasks, decrement) for one in (PI, EI, ucb()))
    assert by_pi > max(by_ei, by_ucb)


# --- measured pairs ---------------------------------------------------------------------------------


def test_programs_run_in_pairs_at_measured_speeds() -> None:
    """Two run at .9 each; what was not measured together is not run together."""
    some = paired_instance({("A", "B"): (0.9, 1.2)}, ["A", "B", "C"], [9.0, 20.0, 5.0])
    assert told(run(some, Fastest()).stints) == [("t00t01", 10.0), ("t01", 10.0), ("t02", 5.0)]
    for strategy in STRATEGIES.values():
        assert run(some, strategy).makespan_s == pytest.approx(25.0)
