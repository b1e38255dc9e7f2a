"""List incidents, show all that belongs to one, and do to its alerts at once what people do to one alert."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

from gateway.domain.access_list import EntryType, ListName
from gateway.domain.agents import fold_name
from gateway.domain.alerts import ACTIVE, TRANSITIONS, Alert, WantedAlert
from gateway.domain.incidents import (
    ChangedIncidents,
    ChangeIncidents,
    Incident,
    IncidentCase,
    IncidentFilter,
    SeenElsewhere,
    StopIncident,
    Stopped,
    StoppedIncident,
    incident_of,
)
from gateway.domain.paging import Page
from gateway.domain.principals import Caller, Permission, Principal
from gateway.domain.traffic import TrafficRow
from gateway.errors import Conflict, GatewayError, InvalidRequest, NotFound
from gateway.records import project
from gateway.schema import check
from gateway.services.access_list import AccessList, WantedEntry
from gateway.services.agents import Agents, WantedAgent
from gateway.services.alerts import Alerts
from gateway.services.core import Service
from gateway.services.keys import Keys
from gateway.store.database import Transaction

MOST_REQUESTS = 100
MOST_SECRETS = 20
MOST_ELSEWHERE = 20
"""Requests of each secret that are not part of the incident."""
DENIED_MS = 86_400_000


class Incidents(Service):
    """The incidents of this gateway, which are groups of its alerts."""

    alerts: Alerts
    keys: Keys
    agents: Agents
    access: AccessList

    async def page(self, wanted: IncidentFilter) -> Page[Incident]:
        """Return a page of incidents, the newest first. Raises InvalidRequest for a bad filter."""

        def work(tx: Transaction) -> Page[Incident]:
            page = self.store.alerts.incidents(tx, wanted)
            found = (self.store.alerts.of_incident(tx, one.incident) for one in page.items)
            return Page(tuple(incident_of(alerts) for alerts in found), page.limit, page.next, page.total)

        return await self.store.db.read(work)

    async def show(self, incident_id: str) -> IncidentCase:
        """Return one incident with all that belongs to it. Raises NotFound."""
        return await self.store.db.read(lambda tx: self.case(tx, incident_id))

    def case(self, tx: Transaction, incident_id: str) -> IncidentCase:
        """Return one incident in a transaction. Raises NotFound."""
        members = self._members(tx, incident_id)
        ids = self.store.alerts.requests_of_incident(tx, incident_id, limit=MOST_REQUESTS)
        rows = tuple(row for id in ids if (row := self.store.traffic.find(tx, id)) is not None)
        return project(
            IncidentCase,
            incident_of(members),
            members=members,
            traffic=rows,
            elsewhere=tuple(self._elsewhere(tx, rows)),
            timeline=self.alerts.timeline(tx, members),
        )

    async def change(self, caller: Caller, wanted: ChangeIncidents) -> ChangedIncidents:
        """Change the alerts of incidents that can be changed like this. An audit event for each alert records it.

        Raises:
            InvalidRequest: a field; `param` names it. NotFound: there is no such incident; nothing was changed.
            Conflict: no alert of the incidents can take the status. AuditUnavailable: nothing was changed.
        """
        check(wanted)
        if wanted.status is None and wanted.assigned_to is None:
            raise InvalidRequest("Give a status, or the person to assign to.", param="status")
        change = WantedAlert(status=wanted.status, note=wanted.note, assigned_to=wanted.assigned_to)
        self.alerts.check(change)

        def work(tx: Transaction) -> ChangedIncidents:
            changed: set[str] = set()
            for incident_id in dict.fromkeys(wanted.ids):
                for alert in self._members(tx, incident_id):
                    can_move = wanted.status is None or wanted.status in TRANSITIONS[alert.status]
                    if can_move and (alert.status in ACTIVE or wanted.status is not None):
                        self.alerts.change_in(tx, caller, alert, change)
                        changed.add(incident_id)
            if not changed:
                raise Conflict("No alert of these incidents can be changed like this.", param="status")
            ids = dict.fromkeys(wanted.ids)
            after = tuple(incident_of(self._members(tx, one)) for one in ids)
            return ChangedIncidents(after, tuple(one for one in ids if one not in changed))

        return await self.alerts.audit.commit(work)

    async def stop(self, caller: Caller, wanted: StopIncident) -> StoppedIncident:
        """Deny or revoke the key of an incident and block its agent; say of each act whether it was done.

        Raises:
            NotFound: there is no such incident.
            Conflict: no act is wanted, or the incident has no such key or agent. Nothing was done.
        """
        check(wanted)
        incident = incident_of(await self.store.db.read(lambda tx: self._members(tx, wanted.id)))
        key, agent = incident.key_prefix, incident.agent
        entry = WantedEntry(
            list_name=ListName.DENY,
            entry_type=EntryType.KEY,
            value=key or "",
            reason=wanted.reason,
            expires_at=self.clock.now_at() + DENIED_MS,
            force=True,  # also the only key
        )
        possible: Mapping[str, tuple[Permission, str | None, Callable[[], Awaitable[object]]]] = {
            "deny_key": (Permission.ACCESS_MANAGE, key, lambda: self.access.create(caller, entry)),
            "revoke_key": (Permission.API_KEYS_MANAGE, key, lambda: self.keys.revoke(caller, key or "")),
            "block_agent": (Permission.AGENTS_MANAGE, agent, lambda: self._block(caller, agent or "")),
        }
        chosen = [name for name in possible if getattr(wanted, name)]
        if not chosen:
            raise Conflict(f"Name what to stop: {', '.join(possible)}.", param="deny_key")
        for name in chosen:
            if possible[name][1] is None:
                raise Conflict(f"The incident has no {name.partition('_')[2]}; nothing was done.", param=name)
        acts = [await _done(name, caller.principal, possible[name][0], possible[name][2]) for name in chosen]
        details = {
            "note": wanted.reason,
            "incident": wanted.id,
            "done": [one.act for one in acts if one.done],
            "not_done": {one.act: one.why for one in acts if not one.done},
        }

        def note(tx: Transaction) -> Incident:
            members = self._members(tx, wanted.id)
            self.alerts.audit.append_change(tx, "incident_stopped", caller, "alert", members[-1].id, details=details)
            return incident_of(members)

        return StoppedIncident(tuple(acts), await self.alerts.audit.commit(note))

    async def _block(self, caller: Caller, name: str) -> object:
        """Block an agent, also one that was not seen before."""
        record = await self.store.db.read(lambda tx: self.store.agents.by_name(tx, fold_name(name)))
        if record is None:
            return await self.agents.register(caller, WantedAgent(name=name, status="blocked"))
        return await self.agents.change(caller, record.id, WantedAgent(status="blocked"))

    def _members(self, tx: Transaction, incident_id: str) -> tuple[Alert, ...]:
        members = self.store.alerts.of_incident(tx, incident_id)
        if not members:
            raise NotFound("There is no such incident, or its alerts are no longer stored.", param="id")
        return members

    def _elsewhere(self, tx: Transaction, rows: Sequence[TrafficRow]) -> Iterator[SeenElsewhere]:
        """Yield where the secrets of an incident's requests were seen besides, the newest first."""
        mine = {row.request_id for row in rows}
        known = dict.fromkeys(str(one["secret"]) for row in rows for one in row.detections if one.get("secret"))
        for secret in list(known)[:MOST_SECRETS]:
            ids = self.store.traffic.requests_with(tx, secret, limit=MOST_REQUESTS)
            others = [row for id in ids if id not in mine and (row := self.store.traffic.find(tx, id)) is not None]
            for row in others[:MOST_ELSEWHERE]:
                found = next((one for one in row.detections if one.get("secret") == secret), {})
                direction = found.get("direction")
                yield project(
                    SeenElsewhere,
                    row,
                    secret=secret,
                    matched=str(found.get("matched", "")),
                    direction=direction if isinstance(direction, str) else None,
                )


async def _done(act: str, principal: Principal, needs: Permission, run: Callable[[], Awaitable[object]]) -> Stopped:
    """Do one act of a stop, and say whether it was done."""
    if needs not in principal.permissions:
        return Stopped(act, False, f"Your role lacks {needs.value}.")
    try:
        await run()
    except GatewayError as error:
        return Stopped(act, False, error.message)
    return Stopped(act, True, None)
