"""All that must hold of a tool, in one table: each sentence with the tests or questions that prove it."""

from tests.contract.answers import ANSWERS
from tests.contract.changes import CHANGES
from tests.contract.conduct import CONDUCT
from tests.contract.definitions import DEFINITIONS

MUSTS = (*DEFINITIONS, *ANSWERS, *CONDUCT, *CHANGES)
