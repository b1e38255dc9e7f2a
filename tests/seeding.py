"""Rows of authority that a test puts into the database by itself."""

from collections.abc import Callable
from typing import TypeVar

from gateway.domain.principals import Caller, RequestContext, local
from gateway.store.authority import AuthorityTransaction
from gateway.store.store import Store

T = TypeVar("T")


async def seed(store: Store, work: Callable[[AuthorityTransaction], T]) -> T:
    """Run `work`, which writes tables of authority, without an audit event."""
    who, context = local("seed"), RequestContext(request_id="req_seed")
    return await store.db.write(lambda tx: work(AuthorityTransaction(tx, store.generation, Caller(who, context))))
