"""The words of the OpenAI dialect: keys and fixed values that are nobody's text, so no scan needs to read them."""

_MESSAGE = (
    "messages role content name refusal tool_calls tool_call_id function_call audio annotations reasoning "
    "reasoning_content id type index system developer user assistant tool function custom"
)
_PART = (
    "text image_url url detail input_audio data format file file_data file_id filename input_text output_text "
    "input_image input_file auto low high wav mp3 cache_control ephemeral"
)
_REQUEST = (
    "model max_tokens max_completion_tokens n stream stop temperature top_p presence_penalty frequency_penalty "
    "logit_bias logprobs top_logprobs seed tools tool_choice parallel_tool_calls functions response_format json_schema "
    "json_object metadata prediction modalities service_tier store reasoning_effort verbosity stream_options "
    "include_usage web_search_options user_location search_context_size approximate city country region timezone "
    "medium minimal none required default strict"
)
_SCHEMA = (
    "description parameters properties items object string number integer boolean array null enum anyOf allOf oneOf "
    "additionalProperties schema arguments title minimum maximum"
)
_REPLY = (
    "choices message finish_reason length tool_calls content_filter created usage prompt_tokens completion_tokens "
    "total_tokens prompt_tokens_details completion_tokens_details cached_tokens audio_tokens reasoning_tokens "
    "accepted_prediction_tokens rejected_prediction_tokens system_fingerprint chat.completion transcript expires_at "
    "token logprob bytes url_citation start_index end_index choice list"
)

WORDS = frozenset(" ".join((_MESSAGE, _PART, _REQUEST, _SCHEMA, _REPLY)).split())
"""Compared whole and case-sensitive. Nothing here is longer than 32 characters or says anything by itself."""
