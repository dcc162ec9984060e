"""Misspells words by rule, and says which word a misspelled one is nearest to."""

from collections.abc import Iterable, Iterator

from toolcrib.names import snake_case

MIN_LETTERS = 3
"""A shorter word with a letter less is no longer recognized by anybody."""


def misspelled(word: str) -> Iterator[str]:
    """Yield the word with a letter dropped from its middle, and with two letters there swapped."""
    middle = len(word) // 2
    if len(word) < MIN_LETTERS or not word[middle].isalnum():
        return
    yield word[:middle] + word[middle + 1 :]
    if word[middle - 1] != word[middle]:
        yield word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]


def other_case(name: str) -> Iterator[str]:
    """Yield a name in the other common style: camel case for snake case and the reverse, else capitalized."""
    words = snake_case(name).split("_")
    if len(words) == 1:
        yield name.capitalize()
    elif "_" in name:
        yield words[0] + "".join(map(str.capitalize, words[1:]))
    else:
        yield "_".join(words)


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate with the fewest edits, whatever the case; None if two are equally near."""
    ranked = sorted((distance(word.lower(), each.lower()), each) for each in {*candidates})
    if not ranked or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
        return None
    return ranked[0][1]


def distance(one: str, other: str) -> int:
    """Count the edits between two words: a letter added, dropped or replaced, or two swapped."""
    rows = [list(range(len(other) + 1))]
    for i, left in enumerate(one, 1):
        row = [i]
        for j, right in enumerate(other, 1):
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (left != right)))
            if i > 1 and j > 1 and left == other[j - 2] and one[i - 2] == right:
                row[-1] = min(row[-1], rows[-2][j - 2] + 1)
        rows.append(row)
    return rows[-1][-1]
