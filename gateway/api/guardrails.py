"""Answer the contracts of `gateway.guardrails`: read the body, judge, and write the answer in the contract's form."""

from collections.abc import Awaitable, Callable

from gateway.api.reading import LARGE_BYTES, read_body
from gateway.app import Gateway
from gateway.domain.principals import Principal, RequestContext
from gateway.errors import InvalidRequest
from gateway.guardrails.contract import Call, Contract
from gateway.http.messages import Request, Response
from gateway.offload import ThreadOffload
from gateway.responses import json_response

_MOST_ID_CHARS = 200


def guardrail_edge(
    gateway: Gateway, offload: ThreadOffload, contract: Contract
) -> Callable[[Request, Principal, RequestContext, None], Awaitable[Response]]:
    """Return what answers one contract. Whatever fails is an error of the API, and never a decision."""

    async def judge(request: Request, who: Principal, context: RequestContext, command: None) -> Response:
        is_large = len(request.body) > LARGE_BYTES
        body = await offload.run(read_body, request) if is_large else read_body(request)
        if not isinstance(body, dict):
            raise InvalidRequest("The body must be a JSON object.")
        call = Call(body, request.headers, context.request_id)
        call_id = body.get(contract.call_id)
        kept = call_id[:_MOST_ID_CHARS] if isinstance(call_id, str) else None
        judged = []
        for asked in contract.read(call):
            one = await gateway.guardrails.judge(who, contract.name, asked, context, call_id=kept)
            gateway.metrics.count("gateway_scans_total", source=contract.name, verdict=str(one.result.verdict))
            judged.append(one)
        return json_response(contract.write(call, judged))

    return judge
