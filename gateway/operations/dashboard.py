"""The rows of the dashboard's own files. They show nothing of the gateway; what the page asks, other rows answer."""

from gateway.operations.operation import Answer, Door, Operation

PAGE_OPERATIONS = (
    Operation(
        name="dashboard.page",
        route=("GET", "/"),
        door=Door.PAGE,
        needs=None,
        answer=Answer.BARE,
        summary="Return the page of the dashboard.",
    ),
    Operation(
        name="dashboard.file",
        route=("GET", "/dashboard/{version}/{name}"),
        door=Door.PAGE,
        needs=None,
        answer=Answer.BARE,
        summary="Return a file of the dashboard, which never changes under its path.",
    ),
    Operation(
        name="dashboard.module",
        route=("GET", "/dashboard/{version}/{folder}/{name}"),
        door=Door.PAGE,
        needs=None,
        answer=Answer.BARE,
        summary="Return a file of the dashboard, which never changes under its path.",
    ),
)

FEED_OPERATIONS = (
    Operation(
        name="feed",
        route=("GET", "/api/feed"),
        door=Door.SESSION,
        needs=None,
        answer=Answer.BARE,
        has_secret=True,  # a stream, which is never compressed
        summary="Follow traffic and alerts as server-sent events, as far as the caller may see them.",
    ),
)
