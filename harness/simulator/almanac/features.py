"""What is to be written, one feature an entry: the one table that the repository's plan and tests and the simulated
model's code are made from.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Feature:
    """One function: ``code`` is its definition, ``cases`` are calls and what they give, as Python source."""

    id: str
    module: str
    name: str
    does: str
    code: str
    cases: tuple[tuple[str, str], ...]
    first_try: str = ""
    """What the model writes first, when that is wrong."""

    @property
    def check(self) -> str:
        """The command that decides."""
        return f"python3 -m unittest -q tests.test_{self.module}.{self.name.title().replace('_', '')}"


def _one(name: str, parameters: str, result: str) -> str:
    return f"def {name}({parameters}):\n    return {result}\n"


_TABLE: tuple[tuple[str, tuple[tuple[str, str, str, str, tuple[tuple[str, str], ...]], ...]], ...] = (
    (
        "lengths",
        (
            ("feet_to_metres", "feet", "round(feet * 0.3048, 4)", "feet in metres", (("10", "3.048"), ("0", "0"))),
            ("metres_to_feet", "metres", "round(metres / 0.3048, 4)", "metres in feet", (("3.048", "10"),)),
            ("miles_to_km", "miles", "round(miles * 1.609344, 6)", "miles in kilometres", (("2", "3.218688"),)),
            ("km_to_miles", "km", "round(km / 1.609344, 6)", "kilometres in miles", (("1.609344", "1"),)),
            ("inches_to_cm", "inches", "round(inches * 2.54, 2)", "inches in centimetres", (("10", "25.4"),)),
            ("nautical_to_km", "miles", "round(miles * 1.852, 3)", "nautical miles in kilometres", (("3", "5.556"),)),
            ("fathoms_to_metres", "fathoms", "round(fathoms * 1.8288, 4)", "fathoms in metres", (("5", "9.144"),)),
        ),
    ),
    (
        "masses",
        (
            ("pounds_to_kg", "pounds", "round(pounds * 0.45359237, 6)", "pounds in kilograms", (("2", "0.907185"),)),
            ("kg_to_pounds", "kg", "round(kg / 0.45359237, 4)", "kilograms in pounds", (("10", "22.0462"),)),
            ("ounces_to_grams", "ounces", "round(ounces * 28.349523, 3)", "ounces in grams", (("4", "113.398"),)),
            ("stone_to_kg", "stone", "round(stone * 6.35029318, 3)", "stone in kilograms", (("11", "69.853"),)),
            ("carats_to_grams", "carats", "carats / 5", "carats in grams", (("5", "1"), ("1", "0.2"))),
            ("tonnes_to_pounds", "tonnes", "round(tonnes * 2204.622622, 3)", "tonnes in pounds", (("1", "2204.623"),)),
            ("grains_to_mg", "grains", "round(grains * 64.79891, 3)", "grains in milligrams", (("2", "129.598"),)),
        ),
    ),
    (
        "temperatures",
        (
            ("celsius_to_fahrenheit", "c", "c * 9 / 5 + 32", "Celsius in Fahrenheit", (("100", "212"), ("-40", "-40"))),
            ("fahrenheit_to_celsius", "f", "round((f - 32) * 5 / 9, 4)", "Fahrenheit in Celsius", (("212", "100"),)),
            ("celsius_to_kelvin", "c", "round(c + 273.15, 4)", "Celsius in kelvin", (("0", "273.15"),)),
            ("kelvin_to_celsius", "k", "round(k - 273.15, 4)", "kelvin in Celsius", (("273.15", "0"),)),
            (
                "wind_chill",
                "c, kmh",
                "round(13.12 + 0.6215 * c - 11.37 * kmh ** 0.16 + 0.3965 * c * kmh ** 0.16, 1)",
                "what a wind makes of a temperature",
                (("-10, 30", "-19.5"),),
            ),
            ("mean", "values", "sum(values) / len(values)", "the mean of a list", (("[1, 2, 6]", "3"),)),
            ("span", "values", "max(values) - min(values)", "how far a list reaches", (("[3, 9, 4]", "6"),)),
        ),
    ),
    (
        "calendar",
        (
            (
                "is_leap",
                "year",
                "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)",
                "whether a year is a leap year",
                (("2000", "True"), ("1900", "False"), ("2024", "True")),
            ),
            (
                "days_in_year",
                "year",
                "366 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 365",
                "how many days a year has",
                (("2023", "365"), ("2024", "366")),
            ),
            ("century", "year", "(year + 99) // 100", "the century of a year", (("1900", "19"), ("1901", "20"))),
            ("quarter", "month", "(month + 2) // 3", "the quarter of a month", (("3", "1"), ("4", "2"), ("12", "4"))),
            (
                "hms",
                "seconds",
                "f'{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}'",
                "seconds as hours, minutes, seconds",
                (("3661", "'1:01:01'"),),
            ),
            (
                "minutes_between",
                "a, b",
                "(b - a) % 1440",
                "minutes from one time of day to the next",
                (("1430, 10", "20"),),
            ),
            (
                "iso_week_year",
                "year, week",
                "f'{year}-W{week:02}'",
                "a week by its ISO name",
                (("2026, 7", "'2026-W07'"),),
            ),
        ),
    ),
    (
        "words",
        (
            (
                "initials",
                "name",
                "''.join(part[0].upper() for part in name.split())",
                "the initials of a name",
                (("'ada king lovelace'", "'AKL'"),),
            ),
            (
                "slug",
                "title",
                "'-'.join(''.join(c if c.isalnum() else ' ' for c in title.lower()).split())",
                "a title as part of an address",
                (("'Hello, World!'", "'hello-world'"),),
            ),
            (
                "is_palindrome",
                "text",
                "(t := [c for c in text.lower() if c.isalnum()]) == t[::-1]",
                "whether a text reads the same backwards",
                (("'Never odd or even'", "True"), ("'watch'", "False")),
            ),
            (
                "plural",
                "n, word",
                "f'{n} {word}' if n == 1 else f'{n} {word}s'",
                "a number with its noun",
                (("1, 'day'", "'1 day'"), ("2, 'day'", "'2 days'")),
            ),
            (
                "shorten",
                "text, n",
                "text if len(text) <= n else text[: n - 1] + '…'",
                "a text of at most n characters",
                (("'abcdef', 4", "'abc…'"), ("'abc', 4", "'abc'")),
            ),
            (
                "vowels",
                "text",
                "sum(c in 'aeiou' for c in text.lower())",
                "how many vowels a text has",
                (("'Education'", "5"),),
            ),
            (
                "caesar",
                "text, k",
                "''.join(chr((ord(c) - 97 + k) % 26 + 97) if c.islower() else c for c in text)",
                "a text with its letters moved on",
                (("'xyz a', 3", "'abc d'"),),
            ),
        ),
    ),
    (
        "numbers",
        (
            (
                "clamp",
                "x, low, high",
                "max(low, min(x, high))",
                "a number held between two others",
                (("7, 0, 5", "5"), ("-1, 0, 5", "0")),
            ),
            ("digits", "n", "sum(int(d) for d in str(abs(n)))", "the sum of a number's digits", (("-407", "11"),)),
            (
                "is_prime",
                "n",
                "n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))",
                "whether a number is prime",
                (("1", "False"), ("2", "True"), ("91", "False"), ("97", "True")),
            ),
            (
                "percent",
                "part, whole",
                "round(100 * part / whole, 1)",
                "a part in per cent of the whole",
                (("1, 3", "33.3"),),
            ),
            ("mean_speed", "km, minutes", "round(km * 60 / minutes, 2)", "kilometres per hour", (("10, 25", "24"),)),
            (
                "compound",
                "start, rate, years",
                "round(start * (1 + rate / 100) ** years, 2)",
                "money that earns interest",
                (("1000, 5, 2", "1102.5"),),
            ),
            (
                "roman",
                "n",
                "'X' * (n // 10) + ('', *'I II III IV V VI VII VIII IX'.split())[n % 10]",
                "a number below forty in Roman figures",
                (("9", "'IX'"), ("27", "'XXVII'")),
            ),
        ),
    ),
)

_WRONG = {"century": _one("century", "year", "year // 100 + 1"), "digits": _one("digits", "n", "sum(map(int, str(n)))")}
"""First tries that their tests refuse."""

PHASES = tuple(module for module, _ in _TABLE)

FEATURES: tuple[Feature, ...] = tuple(
    Feature(f"US-{7 * phase + at + 1:03}", module, name, does, _one(name, given, result), cases, _WRONG.get(name, ""))
    for phase, (module, functions) in enumerate(_TABLE)
    for at, (name, given, result, does, cases) in enumerate(functions)
)
