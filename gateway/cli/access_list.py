"""`access list|add|remove`: the access list. Rules are kept in `services.access_list`."""

from gateway.cli.resource import Flag, Row, as_text, commands_of, expiry
from gateway.domain.access_list import EntryType
from gateway.operations.access_list import ACCESS_OPERATIONS

_FORCE = Flag("force", "even if it locks out this host or every API key")

COMMANDS = commands_of(
    "access",
    ACCESS_OPERATIONS,
    "id (acl_…) of the entry",
    Row(
        "list",
        "List the access list.",
        "--json",
        columns={
            "ID": "id",
            "LIST": "list",
            "TYPE": "type",
            "VALUE": "value",
            "SCOPE": "scope",
            "HITS": "hits",
            "EXPIRES": lambda view: view["expires_at"] or "never",
            "REASON": lambda view: as_text(view["reason"] or ""),
        },
    ),
    Row(
        "add",
        "Allow or deny an address, key, model, provider, tool, agent or domain.",
        "--list deny --type CIDR --value 192.0.2.0/24 --reason abuse --expires 7d",
        flags=(
            Flag("list", "allow or deny", read=str.lower),
            Flag("type", f"one of {', '.join(EntryType)}", read=str.upper),
            Flag("value", "address, network, key, domain, or a name that may hold * and ?"),
            Flag("scope", "id or prefix of the one key it applies to", metavar="KEY"),
            Flag("reason", "why, for later readers of the list"),
            expiry("expires_at", "such as 90d or 2030-01-31; never if left out", "expires"),
            _FORCE,
        ),
        note="{list} {type} {value} is on the access list:",
        prints="id",
    ),
    Row(
        "remove",
        "Remove an entry of the access list.",
        "acl_01ARZ3NDEKTSV4RRFFQ69G5FAV",
        flags=(_FORCE,),
        note="{id} ({type} {value}) is removed",
    ),
)
