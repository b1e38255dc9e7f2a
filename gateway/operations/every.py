"""All operations that the server answers, and those that the OpenAPI document describes."""

from gateway.operations.internal import INTERNAL_OPERATIONS
from gateway.operations.operation import Door
from gateway.operations.probes import PAGE_OPERATIONS
from gateway.operations.public import OPERATIONS

ALL_OPERATIONS = OPERATIONS + INTERNAL_OPERATIONS + PAGE_OPERATIONS
DESCRIBED_OPERATIONS = tuple(row for row in ALL_OPERATIONS if row.door is not Door.PAGE)
