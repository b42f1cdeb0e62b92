"""The order of the steps: shuffled with the plan's seed, in as few boots as its rounds allow."""

import random
from dataclasses import asdict, dataclass

from .plan import Plan


@dataclass(frozen=True)
class Step:
    """One measured run of a test in a configuration."""

    number: int
    round: int
    kernel: str
    boot_entry: str
    xen: bool
    configuration: str
    test: str
    cache: str
    repeat: int

    def as_dict(self) -> dict:
        """For the state on disk."""
        return asdict(self)


def make(plan: Plan) -> list[Step]:
    """All steps. In each round every kernel is booted once, in shuffled order, and in each boot what it is for
    is shuffled: what changes slowly on the machine meets all configurations alike."""
    dice = random.Random(plan.seed)
    steps: list[Step] = []
    each = plan.repeats // plan.rounds
    for number in range(plan.rounds):
        boots = list(dict.fromkeys(configuration.boot for configuration in plan.configurations.values()))
        dice.shuffle(boots)
        for boot in boots:
            block = [(configuration.name, test.name, cache, number * each + repeat)
                     for configuration in plan.configurations.values() if configuration.boot == boot
                     for test in plan.tests.values() for cache in test.caches for repeat in range(each)]
            dice.shuffle(block)
            steps += [Step(len(steps) + index, number, *boot, *what) for index, what in enumerate(block)]
    return steps
