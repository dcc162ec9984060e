"""All rules of tools in one table, each with its tests or review questions."""

from tests.contract.answers import ANSWERS
from tests.contract.changes import CHANGES
from tests.contract.conduct import CONDUCT
from tests.contract.definitions import DEFINITIONS

MUSTS = (*DEFINITIONS, *ANSWERS, *CONDUCT, *CHANGES)
