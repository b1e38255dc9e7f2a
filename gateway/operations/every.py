"""The rows of all paths that the server answers, those that OpenAPI describes, and those loaded last."""

from gateway.operations.dashboard import PAGE_OPERATIONS
from gateway.operations.internal import INTERNAL_OPERATIONS
from gateway.operations.operation import Door
from gateway.operations.probes import PROBE_OPERATIONS
from gateway.operations.prompts import PROMPT_OPERATIONS
from gateway.operations.public import OPERATIONS

ALL_OPERATIONS = OPERATIONS + INTERNAL_OPERATIONS + PAGE_OPERATIONS
DESCRIBED_OPERATIONS = tuple(row for row in ALL_OPERATIONS if row.door is not Door.PAGE)
OTHER_OPERATIONS = tuple(row for row in ALL_OPERATIONS if row not in PROBE_OPERATIONS + PROMPT_OPERATIONS)
