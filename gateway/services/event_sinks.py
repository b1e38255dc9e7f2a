"""From the record of an event output to its way out: secrets read, addresses bounded, folders named."""

import os

from gateway.clock import Clock
from gateway.domain.addresses import may_connect, may_connect_privately
from gateway.domain.event_outputs import EventOutput, OutputKind, read_secret, read_syslog_target
from gateway.errors import GatewayError
from gateway.outputs.delivery import Delivery, DeliveryFailed
from gateway.outputs.jsonlines import JsonLines
from gateway.outputs.syslog import Syslog
from gateway.outputs.webhook import Post, Webhook
from gateway.services.provider_keys import ProviderKeys

EVENTS_FOLDER = "events"


class EventSinks:
    """Makes ways out. post: sends a request. folder: of the files of events, None where nothing may be written."""

    def __init__(self, *, post: Post, clock: Clock, secrets: ProviderKeys, folder: str | None, sender: str) -> None:
        self._post = post
        self._clock = clock
        self._secrets = secrets
        self._folder = folder
        self._sender = sender

    def check_secret(self, reference: str) -> None:
        """Refuse a reference of a secret that the settings do not allow.

        Raises:
            InvalidRequest: `param` is ``secret``.
        """
        self._secrets.check(reference, param="secret")

    def open(self, output: EventOutput) -> Delivery:
        """Return the way out of an output. Connects to nothing yet.

        Raises:
            DeliveryFailed: its secret is not where the record says, or there is no folder for files.
        """
        allow = may_connect_privately if output.allow_private else may_connect
        match output.kind:
            case OutputKind.WEBHOOK:
                return Webhook(self._post, output.target, key=self._key(output), clock=self._clock, allow_address=allow)
            case OutputKind.SYSLOG:
                way, host, port = read_syslog_target(output.target)
                return Syslog(way, host, port, sender=self._sender, allow_address=allow)
            case OutputKind.JSONL:
                if self._folder is None:
                    raise DeliveryFailed("The data is in memory, so there is no folder for files.")
                return JsonLines(os.path.join(self._folder, EVENTS_FOLDER), output.target)

    def _key(self, output: EventOutput) -> bytes:
        try:
            return read_secret(self._secrets.read(output.secret) or "")
        except GatewayError as error:
            raise DeliveryFailed(f"The webhook cannot be signed. {error.message}") from error
