import os
import signal
from collections.abc import Iterator

import pytest

from freshet.stack.signals import Interrupted, Interrupts

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Whatever a test does, the handlers are the same afterwards."""
    before = [signal.getsignal(number) for number in NUMBERS]
    yield
    assert [signal.getsignal(number) for number in NUMBERS] == before


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_first_signal_interrupts_and_later_ones_do_not(number: signal.Signals) -> None:
    cleaned_up = False
    with Interrupts() as interrupts, pytest.raises(Interrupted):
        assert not interrupts.came
        try:
            send(number)
            pytest.fail("not interrupted")
        finally:
            for later in NUMBERS:
                send(later)
            cleaned_up = True
    assert cleaned_up
    assert interrupts.came


def test_a_shield_puts_the_interrupt_off_to_its_end() -> None:
    whole = False
    with Interrupts() as interrupts, pytest.raises(Interrupted), interrupts.shield():
        send(signal.SIGTERM)
        whole = interrupts.came
    assert whole


def test_a_shield_around_cleaning_up_after_an_interrupt_raises_nothing_itself() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(Interrupted):
            send(signal.SIGINT)
        with interrupts.shield():
            send(signal.SIGINT)


def test_an_error_within_a_shield_is_not_hidden_by_a_signal() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(ZeroDivisionError), interrupts.shield():
            send(signal.SIGINT)
            _ = 1 / 0
        assert interrupts.came
