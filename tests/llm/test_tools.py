"""Names of tools in requests and replies."""

from gateway.llm.tools import called_tools, offered_tools


def test_a_request_tells_its_tools_wherever_they_stand() -> None:
    body = {
        "tools": [
            {"type": "function", "function": {"name": "a"}},
            {"type": "custom", "custom": {"name": "b"}},
            {"type": "web_search"},
            {"name": "c"},
        ],
        "functions": [{"name": "d"}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [{"function": {"name": "e"}}]}},
        "function_call": {"name": "f"},
        "messages": [
            {"role": "user", "content": "x", "name": "ann"},
            {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "g"}}]},
            {"role": "assistant", "function_call": {"name": "h"}},
            {"role": "function", "name": "i", "content": "x"},
        ],
    }
    assert sorted(offered_tools(body)) == ["a", "b", "c", "d", "e", "f", "g", "h", "i", "web_search"]


def test_a_reply_tells_the_tools_it_calls() -> None:
    body = {
        "choices": [
            {"message": {"tool_calls": [{"type": "function", "function": {"name": "a"}}]}},
            {"message": {"function_call": {"name": "b"}}},
            {"message": {"content": "no call"}},
        ]
    }
    assert list(called_tools(body)) == ["a", "b"]


def test_what_has_another_shape_has_no_tools() -> None:
    assert list(offered_tools({"tools": "x", "functions": [1], "tool_choice": "auto", "messages": [None]})) == []
    assert list(called_tools({"choices": [None, {"message": 1}, {}]})) == []
