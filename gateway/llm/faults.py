"""What came of a request that got no completion, told without addresses, keys and account names. Sends nothing."""

import re

from gateway.errors import InvalidJson
from gateway.http.messages import ClientError, ConnectFailed, NoReply, ReplyTimeout, ReplyTooLarge
from gateway.http.messages import Reply as HttpReply
from gateway.llm.base import UpstreamFault, UpstreamRefused
from gateway.strict_json import read_json

MAX_ERROR_BYTES = 64 * 1024
MAX_ERROR_CHARS = 500
DEFAULT_RETRY_SECONDS = 5
MAX_RETRY_SECONDS = 86_400
# These are about the gateway's own account with the provider, which the caller cannot mend.
_OUR_ACCOUNT = (401, 403, 407)
_CODE = re.compile("[a-z][a-z0-9_]{0,63}")
_PARAM = re.compile(r"[A-Za-z0-9_.\[\]-]{1,128}")
_NAMES = re.compile(r"\b(?:org|proj|sk|pk|acct)[-_][\w*.-]+|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|\bhttps?://\S+")
_PASSED_ON = "openai-processing-ms"  # the one header that a client may see, if it is a number
_DIGITS = re.compile("[0-9]{1,6}")


def fault_of(error: ClientError) -> UpstreamFault:
    """Return the error for a request that got no good reply."""
    if isinstance(error, ReplyTimeout):
        return UpstreamFault("The model gateway did not answer in time.", detail=error.reason, is_late=True)
    if isinstance(error, ReplyTooLarge):
        return UpstreamFault("The model gateway answered more than is allowed.", detail=error.reason)
    message = "The model gateway cannot be reached or broke off its answer."
    return UpstreamFault(message, detail=error.reason, may_repeat=isinstance(error, ConnectFailed | NoReply))


def refusal_of(answer: HttpReply, *, has_key: bool = False) -> UpstreamFault | UpstreamRefused:
    """Return the error for an answer whose status is no success. has_key: it had repeated our own key."""
    status = answer.status
    if status < 400:
        message = "The model gateway answered with a redirect, which is not followed."
        return UpstreamFault(message, detail=f"it answered with a redirect (status {status})", status=status)
    if status in _OUR_ACCOUNT:
        message = "The model gateway refused the credentials of this gateway."
        return UpstreamFault(message, detail=f"it refused the API key (status {status})", status=status)
    if status >= 500:
        message = f"The model gateway failed with status {status}."
        return UpstreamFault(message, detail=f"it failed with status {status}", status=status, may_repeat=True)
    if status == 429:
        # Its text names the account, and its code means nothing to a caller without an account there.
        message = "The model gateway takes no more requests for now."
        return UpstreamRefused(status, message, retry_after_seconds=_retry_after(answer.headers), has_key=has_key)
    return _refused(status, answer.body, has_key)


def _refused(status: int, body: bytes, has_key: bool) -> UpstreamRefused:
    """Keep of an OpenAI error body what is well formed: message, code and param."""
    try:
        value = read_json(body) if len(body) <= MAX_ERROR_BYTES else None
    except InvalidJson:
        return UpstreamRefused(status, has_key=has_key)
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict):
        error = {"message": error}
    message, code, param = error.get("message"), error.get("code"), error.get("param")
    return UpstreamRefused(
        status,
        _NAMES.sub("****", message[:MAX_ERROR_CHARS]).strip() if isinstance(message, str) else None,
        code=code if isinstance(code, str) and _CODE.fullmatch(code) else None,
        param=param if isinstance(param, str) and _PARAM.fullmatch(param) else None,
        has_key=has_key,
    )


def _retry_after(headers: tuple[tuple[str, str], ...]) -> int:
    """Return whole seconds; a date or anything else than digits counts as not given."""
    for name, value in headers:
        if name == "retry-after" and _DIGITS.fullmatch(value):
            return min(max(int(value), 1), MAX_RETRY_SECONDS)
    return DEFAULT_RETRY_SECONDS


def passed_on(answer: HttpReply) -> tuple[tuple[str, str], ...]:
    """Return the headers of an answer that a client may see."""
    return tuple(one for one in answer.headers if one[0] == _PASSED_ON and _DIGITS.fullmatch(one[1]))
