"""The rows of all paths that the server answers, and those that are loaded when one of them is asked for."""

from gateway.operations.dashboard import PAGE_OPERATIONS
from gateway.operations.first import FIRST_OPERATIONS
from gateway.operations.internal import INTERNAL_OPERATIONS
from gateway.operations.public import OPERATIONS

ALL_OPERATIONS = OPERATIONS + INTERNAL_OPERATIONS + PAGE_OPERATIONS
LATER_OPERATIONS = tuple(operation for operation in ALL_OPERATIONS if operation not in FIRST_OPERATIONS)
