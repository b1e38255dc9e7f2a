"""The table of roles in docs/control.md is the code's. `python tests/house/test_control_doc.py` writes it anew."""

import re
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gateway.domain.principals import ROLE_PERMISSIONS, Permission, Role

DOC = Path(__file__).resolve().parents[2] / "docs" / "control.md"
PLACE = re.compile(r"(<!-- roles -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def roles() -> str:
    resources = list(dict.fromkeys(one.value.partition(":")[0] for one in Permission))
    lines = [("resource", *(f"`{role.value}`" for role in Role)), tuple("---" for _ in range(len(Role) + 1))]
    for resource in resources:
        words = []
        for role in Role:
            held = {
                one.value.partition(":")[2] for one in ROLE_PERMISSIONS[role] if one.value.startswith(f"{resource}:")
            }
            words.append("manage" if "manage" in held else "read" if "read" in held else "")
        lines.append((f"`{resource}`", *words))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def test_manage_includes_read_in_every_role() -> None:
    for held in ROLE_PERMISSIONS.values():
        for one in held:
            if one.value.endswith(":manage"):
                assert Permission(one.value.replace(":manage", ":read")) in held


def test_the_table_of_roles_is_the_table_of_the_code() -> None:
    found = PLACE.search(DOC.read_text("utf-8"))
    assert found, "docs/control.md lost its place for the roles"
    assert found[2].strip() == roles(), "run: python tests/house/test_control_doc.py"


if __name__ == "__main__":
    DOC.write_text(PLACE.sub(lambda found: f"{found[1]}\n{roles()}\n\n{found[3]}", DOC.read_text("utf-8")), "utf-8")
