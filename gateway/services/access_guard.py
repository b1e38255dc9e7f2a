"""The access list at work: who and what may pass. Refuses and counts; changes no entry.

The list is made ready once and kept until the store's generation moves or an entry expires, so that a change holds in
every process at its next request. An empty list costs one attribute test a request.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from gateway.clock import Clock
from gateway.domain.access_list import OF_REQUEST, AccessEntry, Rules, Subject
from gateway.domain.hosts import linked_hosts, named_hosts
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import AccessDenied
from gateway.llm.base import Leaf, LeafKind, Leaves, Prompt, Reply, ReplyLeaves
from gateway.llm.tools import called_tools, offered_tools
from gateway.offload import ThreadOffload
from gateway.store.database import StoreUnavailable, Transaction
from gateway.store.store import Store

LONG_CHARS = 16_384
"""More text than this is searched for links in a thread."""


class Named(Protocol):
    """What the access list knows by a name."""

    @property
    def name(self) -> str:
        """The name."""
        ...


Usable = TypeVar("Usable", bound=Named)


class ReplyReader(Protocol):
    """What finds the texts of a reply."""

    def reply_leaves(self, reply: Reply) -> ReplyLeaves:
        """Return every text of the reply."""
        ...


class EntryDenied(AccessDenied):
    """The access list refused. entry: which of its entries."""

    def __init__(self, entry: AccessEntry, subject: Subject, *, is_listed: bool, param: str | None) -> None:
        what = f"by the entry {entry.id}" if is_listed else f"by the allow list: no entry such as {entry.id} matches"
        super().__init__(f"Access is denied {what} ({subject.value}).", param=param)
        self.entry = entry


class AccessGuard:
    """The access list of this process.

    rules: None while there is no entry, which is all that is looked at then. `refresh` comes first: the
    authentication calls it for every request whose generation is another.
    """

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._hits: dict[str, int] = {}
        self._aside = ThreadOffload()
        self._seen: tuple[tuple[str, int], ...] = ()
        self.rules: Rules | None = None

    def refresh(self) -> None:
        """Read the entries again if one was changed: the generation moves with changes of other things as well.

        Raises:
            StoreUnavailable: they cannot be read, so nobody may pass.
        """
        entries = self._store.db.read_now(self._changed)
        if entries is not None:
            self.rules = Rules(entries, self._clock.now_at()) or None
            self._seen = tuple((entry.id, entry.version) for entry in entries)

    def check_caller(self, principal: Principal, context: RequestContext, now_at: int) -> None:
        """Check address and key of a request.

        Raises:
            EntryDenied: one of them may not pass.
        """
        rules = self._rules(now_at)
        if rules is None or rules.has.isdisjoint(OF_REQUEST):
            return
        self._check(rules, Subject.ADDRESS, context.ip or "", principal.id, None)
        self._check(rules, Subject.KEY, principal.id, principal.id, None)

    async def check_prompt(
        self, principal: Principal, prompt: Prompt, leaves: Leaves, *, agent: str, provider: str | None = None
    ) -> None:
        """Check what a prompt asks for, before anything is sent: model, provider, agent, tools and links.

        provider: None when `usable` has looked at it.

        Raises:
            EntryDenied: something of it may not pass; `param` says what.
        """
        rules = self._rules(self._clock.now_at())
        if rules is None:
            return
        key_id = principal.id
        self._check(rules, Subject.MODEL, prompt.model, key_id, "model")
        if provider is not None:
            self._check(rules, Subject.PROVIDER, provider, key_id, "model")
        self._check(rules, Subject.AGENT, agent, key_id, None)
        if Subject.TOOL in rules.has:
            for tool in offered_tools(prompt.body):
                self._check(rules, Subject.TOOL, tool, key_id, "tools")
        await self._check_links(rules, leaves.texts, key_id, "messages")

    def usable(self, principal: Principal, providers: Sequence[Usable]) -> Sequence[Usable]:
        """Return those of `providers` that a caller may use.

        Raises:
            EntryDenied: there are some, and none may be used.
        """
        rules = self._rules(self._clock.now_at())
        if rules is None or Subject.PROVIDER not in rules.has:
            return providers
        found: list[Usable] = []
        denied: EntryDenied | None = None
        for provider in providers:
            try:
                self._check(rules, Subject.PROVIDER, provider.name, principal.id, "model")
            except EntryDenied as error:
                denied = denied or error
            else:
                found.append(provider)
        if denied is not None and not found:
            raise denied
        return found

    def may_use(self, principal: Principal, subject: Subject, value: str) -> bool:
        """Tell whether a caller may use a model or provider. Counts nothing: nobody has asked for it yet."""
        rules = self._rules(self._clock.now_at())
        return rules is None or rules.decide(subject, value, principal.id).is_allowed

    async def check_reply(self, principal: Principal, reply: Reply, reader: ReplyReader) -> None:
        """Check the tools a reply calls and what it links to.

        Raises:
            EntryDenied: something of it may not pass; nothing of the reply is to be given out.
            UpstreamUnavailable: it holds more than can be looked through.
        """
        rules = self._rules(self._clock.now_at())
        if rules is None:
            return
        if Subject.TOOL in rules.has:
            for tool in called_tools(reply.body):
                self._check(rules, Subject.TOOL, tool, principal.id, None)
        if Subject.DOMAIN in rules.has:
            leaves = await self._aside.run(reader.reply_leaves, reply, is_long=reply.is_large)
            texts = [leaf for part in (*leaves.choices, leaves.outside) for leaf in part.texts]
            await self._check_links(rules, texts, principal.id, None)

    def flush_hits(self) -> None:
        """Add what was counted to the entries, behind. What the store does not take is counted on."""
        if not self._hits:
            return
        hits, self._hits = self._hits, {}
        try:
            self._store.db.write_behind(lambda tx: self._store.access_list.add_hits(tx, hits))
        except StoreUnavailable:
            for entry_id, count in hits.items():
                self._hits[entry_id] = self._hits.get(entry_id, 0) + count

    def _changed(self, tx: Transaction) -> tuple[AccessEntry, ...] | None:
        repository = self._store.access_list
        return None if repository.versions(tx) == self._seen else repository.all(tx)

    def _rules(self, now_at: int) -> Rules | None:
        rules = self.rules
        if rules is not None and now_at >= rules.until_at:
            rules = self.rules = rules.later(now_at) or None
        return rules

    def _check(self, rules: Rules, subject: Subject, value: str, key_id: str, param: str | None) -> None:
        decision = rules.decide(subject, value, key_id)
        entry = decision.entry
        if entry is None:
            return
        if decision.is_listed:
            self._hits[entry.id] = self._hits.get(entry.id, 0) + 1
        if not decision.is_allowed:
            raise EntryDenied(entry, subject, is_listed=decision.is_listed, param=param)

    async def _check_links(self, rules: Rules, texts: Iterable[Leaf], key_id: str, param: str | None) -> None:
        """Check hosts: against the deny list whatever may be read as one, against the allow list what is a link.

        An allow list for every word with a dot in it would refuse file names. What describes a tool is no link of
        anybody: schemas name their own standard.
        """
        if Subject.DOMAIN not in rules.has:
            return
        leaves = list(texts)
        is_long = sum(len(leaf.text) for leaf in leaves) > LONG_CHARS
        for host in await self._aside.run(_named, leaves, is_long=is_long):
            if (entry := rules.denied(Subject.DOMAIN, host, key_id)) is not None:
                self._hits[entry.id] = self._hits.get(entry.id, 0) + 1
                raise EntryDenied(entry, Subject.DOMAIN, is_listed=True, param=param)
        if rules.has_allow(Subject.DOMAIN, key_id):
            for host in await self._aside.run(_linked, leaves, is_long=is_long):
                self._check(rules, Subject.DOMAIN, host, key_id, param)


def _named(leaves: Iterable[Leaf]) -> set[str]:
    return {host for leaf in leaves for host in named_hosts(leaf.text)}


def _linked(leaves: Iterable[Leaf]) -> set[str]:
    return {host for leaf in leaves if leaf.kind is not LeafKind.TOOL for host in linked_hosts(leaf.text)}
