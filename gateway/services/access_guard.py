"""Apply the access list: refuse requests, and count the hits of the entries. Changes no entry.

The list is indexed once, and again when it was changed or an entry expires.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import field

from gateway.domain.access_list import AccessEntry, Decision, Rules, Subject
from gateway.domain.hosts import linked_hosts, named_hosts
from gateway.domain.principals import Caller, Principal
from gateway.errors import AccessDenied
from gateway.llm.base import Leaf, LeafKind, Leaves, Prompt, Reply
from gateway.llm.openai import OpenAiDialect
from gateway.llm.tools import called_tools, offered_tools
from gateway.offload import ThreadOffload
from gateway.services.core import Service
from gateway.services.routing import ProviderConnection
from gateway.store.database import StoreUnavailable

LONG_CHARS = 16_384
"""A longer text is searched for links in a thread."""


class EntryDenied(AccessDenied):
    """The access list refused. entry: which of its entries."""

    def __init__(self, entry: AccessEntry, subject: Subject, *, is_listed: bool, param: str | None) -> None:
        what = f"by the entry {entry.id}" if is_listed else f"by the allow list: no entry such as {entry.id} matches"
        super().__init__(f"Access is denied {what} ({subject.value}).", param=param)
        self.entry = entry


class AccessGuard(Service):
    """The access list as this process applies it. Every request follows authority first."""

    rules: Rules = field(default=Rules((), 0), init=False)
    _hits: Counter[str] = field(default_factory=Counter, init=False)
    _offload: ThreadOffload = field(default_factory=ThreadOffload, init=False)
    _entries: Sequence[AccessEntry] = field(default=(), init=False)

    def check_caller(self, caller: Caller) -> None:
        """Check the address and the key of a request. Raises EntryDenied."""
        self._check(Subject.ADDRESS, caller.context.ip or "", caller.principal, None)
        self._check(Subject.KEY, caller.principal.id, caller.principal, None)

    async def check_prompt(self, principal: Principal, prompt: Prompt, leaves: Leaves, *, agent: str) -> None:
        """Check model, agent, tools and links of a prompt before anything is sent. `usable` checks the providers.

        Raises EntryDenied; its `param` names what is denied.
        """
        self._check(Subject.MODEL, prompt.model, principal, "model")
        self._check(Subject.AGENT, agent, principal, None)
        for tool in offered_tools(prompt.body):
            self._check(Subject.TOOL, tool, principal, "tools")
        await self._check_links(leaves.texts, principal, "messages")

    def usable(self, principal: Principal, providers: Sequence[ProviderConnection]) -> Sequence[ProviderConnection]:
        """Return those of `providers` that a caller may use. Raises EntryDenied if there is none."""
        found: list[ProviderConnection] = []
        denied: list[EntryDenied] = []
        for provider in providers:
            try:
                self._check(Subject.PROVIDER, provider.name, principal, "model")
                found.append(provider)
            except EntryDenied as error:
                denied.append(error)
        if denied and not found:
            raise denied[0]
        return found

    def may_use(self, principal: Principal, subject: Subject, value: str) -> bool:
        """Return whether a caller may use a model or provider. Counts no hit."""
        return self._rules().decide(subject, value, principal.id).is_allowed

    async def check_reply(self, principal: Principal, reply: Reply, dialect: OpenAiDialect) -> None:
        """Check the tool calls and the links of a reply.

        Raises:
            EntryDenied: one of them is denied; nothing of the reply may leave.
            UpstreamUnavailable: the reply is too large to be searched.
        """
        for tool in called_tools(reply.body):
            self._check(Subject.TOOL, tool, principal, None)
        if Subject.DOMAIN in self._rules().has:
            read = dialect.reply_leaves
            leaves = await self._offload.run(read, reply) if reply.is_large else read(reply)
            texts = [leaf for part in (*leaves.choices, leaves.outside) for leaf in part.texts]
            await self._check_links(texts, principal, None)

    def flush_hits(self) -> None:
        """Queue the hits for the store. If its queue is full, keep them for the next call."""
        hits, self._hits = self._hits, Counter()
        if hits:
            try:
                self.store.db.write_behind(lambda tx: self.store.access_list.add_hits(tx, hits))
            except StoreUnavailable:
                self._hits.update(hits)

    def _rules(self) -> Rules:
        entries, now_at = self.store.authority.now.access_entries, self.clock.now_at()
        if entries is not self._entries or now_at >= self.rules.until_at:
            self.rules, self._entries = Rules(entries, now_at), entries
        return self.rules

    def _check(self, subject: Subject, value: str, principal: Principal, param: str | None) -> None:
        self._apply(self._rules().decide(subject, value, principal.id), subject, param)

    def _apply(self, decision: Decision, subject: Subject, param: str | None) -> None:
        entry = decision.entry
        if entry is None:
            return
        if decision.is_listed:
            self._hits[entry.id] += 1
        if not decision.is_allowed:
            raise EntryDenied(entry, subject, is_listed=decision.is_listed, param=param)

    async def _check_links(self, texts: Iterable[Leaf], principal: Principal, param: str | None) -> None:
        """Check hosts: whatever may be read as one against the deny list, only links against the allow list.

        An allow list for every word with a dot in it would refuse file names. The schema of a tool is no link: it names
        its own standard.
        """
        rules = self._rules()
        if Subject.DOMAIN not in rules.has:
            return
        leaves = list(texts)
        is_long = sum(len(leaf.text) for leaf in leaves) > LONG_CHARS
        named, linked = await self._offload.run(_hosts, leaves) if is_long else _hosts(leaves)
        for host in named:
            denied = rules.denied(Subject.DOMAIN, host, principal.id)
            self._apply(Decision(denied is None, denied), Subject.DOMAIN, param)
        if rules.has_allow(Subject.DOMAIN, principal.id):
            for host in linked:
                self._check(Subject.DOMAIN, host, principal, param)


def _hosts(leaves: Iterable[Leaf]) -> tuple[set[str], set[str]]:
    """Return what may be read as a host, and the hosts of links outside of tools."""
    named = {host for leaf in leaves for host in named_hosts(leaf.text)}
    return named, {host for leaf in leaves if leaf.kind is not LeafKind.TOOL for host in linked_hosts(leaf.text)}
