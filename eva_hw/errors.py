"""The one exception that reaches a user: everything wrong with an input, at once."""

__all__ = ["InputError", "Problems"]


class InputError(ValueError):
    """Bad input, described for the person who gave it.

    Parameters
    ----------
    problems : list[str] | str
        One line per offender, each naming the field or file, the value and what is legal.
    subject : str
        What was being read or checked, for the first line of the message.
    """

    def __init__(self, problems, subject=""):
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        self.subject = subject
        head = f"{subject}: " if subject else ""
        if len(self.problems) == 1:
            text = head + self.problems[0]
        else:
            text = f"{head}{len(self.problems)} problems" + "".join(f"\n  - {p}" for p in self.problems)
        super().__init__(text)


class Problems:
    """Collects offenders, so that all of them are reported in one :class:`InputError`."""

    def __init__(self, subject=""):
        self.subject = subject
        self.found = []

    def check(self, ok, message):
        """Note ``message`` unless ``ok``; returns ``bool(ok)``."""
        if not ok:
            self.found.append(message)
        return bool(ok)

    def raise_if_any(self):
        """Raises :class:`InputError` naming every offender noted so far."""
        if self.found:
            raise InputError(self.found, self.subject)
