"""The bodies that every target gets: one kilobyte of ordinary prose to scan or to chat about, and a completion."""

import json

MODEL = "mock-model"
_PROSE = (
    "Please summarise the attached notes for the weekly meeting. Sales in the northern region rose by four percent "
    "while returns stayed flat; the new warehouse opens in March and will need twelve people on the early shift. "
    "Customers asked most often about delivery dates, the second size chart and how to change an address after "
    "ordering. Maria suggests moving the newsletter to Thursday, because open rates were better in both trials. "
    "The printer on the second floor is still out of order, so the posters come from the shop in Mill Street. "
    "Travel costs were below plan, but two invoices are missing and should be here by Friday. For the spring fair we "
    "have a stand of nine square metres beside the entrance; Tom brings the samples and the two tall lamps. "
    "Open questions: who answers the phone during the fair, whether the old catalogue is kept for schools, and what "
    "we do with the unsold calendars. Keep the summary short, with a list of tasks and a name beside each of them, and "
    "end with the date of the next meeting. "
)


def prompt(chars: int = 1024) -> str:
    """Return ordinary prose of this length."""
    return (_PROSE * (chars // len(_PROSE) + 1))[:chars]


def scan_body() -> bytes:
    """Return a request to scan one kilobyte."""
    return json.dumps({"text": prompt(), "direction": "inbound"}).encode()


def chat_body() -> bytes:
    """Return a request to chat, with a prompt of one kilobyte."""
    messages = [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": prompt()},
    ]
    return json.dumps({"model": MODEL, "messages": messages, "temperature": 0.2, "max_tokens": 64}).encode()


def completion() -> str:
    """Return what the mock upstream answers to everything. nginx fills in the variables: no two replies are alike."""
    answer = {
        "id": "chatcmpl-$request_id",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": f"{prompt(300)} Note $connection, line $connection_requests.",
                },
                "finish_reason": "stop",
            },
        ],
        "usage": {"prompt_tokens": 240, "completion_tokens": 70, "total_tokens": 310},
    }
    return json.dumps(answer)
