"""From a provider's record and its key to the connection: the dialect over HTTP, or the built-in model."""

from collections.abc import Callable

from gateway.domain.addresses import address_check
from gateway.domain.providers import MAX_PRIORITY, UPSTREAM, Provider, ProviderType
from gateway.llm.base import Upstream
from gateway.llm.upstream import HttpUpstream, Terms
from gateway.settings import Settings


def connect(
    settings: Settings, open_http: Callable[..., HttpUpstream], echo: Upstream, provider: Provider, key: str | None
) -> Upstream:
    """Return the connection to a provider. Nothing is sent, and no name is resolved.

    open_http: makes an upstream over the client and in the dialect of this process, of what else it takes.
    """
    if provider.type is ProviderType.ECHO or provider.base_url is None:
        return echo
    is_ours = provider.origin == "settings"
    total_seconds = provider.timeout_seconds
    terms = Terms(
        connect_seconds=min(settings.upstream_connect_seconds, total_seconds),
        first_byte_seconds=settings.upstream_first_byte_seconds if is_ours else total_seconds,
        total_seconds=total_seconds,
        max_reply_bytes=settings.upstream_reply_bytes,
        allow_address=address_check(allow_private=provider.allow_private),
    )
    return open_http(
        terms,
        base_url=provider.base_url,
        api_key=settings.upstream_api_key if is_ours else key,
        models=settings.upstream_models if is_ours else (),
    )


def settings_provider(settings: Settings) -> Provider | None:
    """Return the provider that the settings make, which comes after all others; None if they make none."""
    if settings.upstream_url is None:
        return None
    return Provider(
        id=UPSTREAM,
        name=UPSTREAM,
        base_url=settings.upstream_url,
        priority=MAX_PRIORITY,
        timeout_seconds=settings.upstream_total_seconds,
        max_retries=0,
        allow_private=True,
        created_by="settings",
        origin="settings",
    )
