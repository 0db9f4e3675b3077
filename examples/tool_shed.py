"""An ordinary Python class: a street's shared tool shed. It knows nothing of agents or of this package."""

from typing import Any, TypedDict


class Tool(TypedDict):
    """A tool in the shed, or in a neighbour's hands."""

    name: str
    deposit: int
    borrowed_by: str | None


class Neighbour(TypedDict):
    """A household with a balance, in euros, from which deposits are taken."""

    name: str
    balance: int


class ToolShed:
    """The tool shed that a street shares: neighbours borrow tools against a deposit.

    Rules:
    - A tool can be borrowed by one neighbour at a time.
    - A neighbour needs a balance of at least the tool's deposit, which is taken when the tool is borrowed.
    - The deposit is given back when the tool is returned.
    """

    def __init__(self, init_config: dict[str, Any]) -> None:
        self.tools: dict[str, Tool] = init_config.get("tools", {})
        self.neighbours: dict[str, Neighbour] = init_config.get("neighbours", {})

    def list_tools(self) -> dict[str, Any]:
        """List all tools, and who has borrowed them.

        Returns:
            dict: success and tools.
        """
        return {"success": True, "tools": list(self.tools.values())}

    def borrow(self, neighbour: str, tool: str) -> dict[str, Any]:
        """Lend a tool to a neighbour.

        Args:
            neighbour (str): The neighbour's name.
            tool (str): The tool's name.

        Returns:
            dict: success and balance, or an error.
        """
        if neighbour not in self.neighbours or tool not in self.tools:
            return {"success": False, "error": f"No neighbour {neighbour!r}, or no tool {tool!r}."}
        holder, deposit = self.tools[tool]["borrowed_by"], self.tools[tool]["deposit"]
        if holder:
            return {"success": False, "error": f"{holder} has the {tool}: it has to be returned first."}
        if self.neighbours[neighbour]["balance"] < deposit:
            return {"success": False, "error": f"{neighbour} cannot pay the deposit of {deposit}."}
        self.neighbours[neighbour]["balance"] -= deposit
        self.tools[tool]["borrowed_by"] = neighbour
        return {"success": True, "balance": self.neighbours[neighbour]["balance"]}

    def give_back(self, tool: str) -> dict[str, Any]:
        """Return a borrowed tool to the shed.

        Args:
            tool (str): The tool's name.

        Returns:
            dict: success and balance of the neighbour who had it, or an error.
        """
        holder = self.tools[tool]["borrowed_by"] if tool in self.tools else None
        if holder is None:
            return {"success": False, "error": f"Nobody has borrowed {tool!r}: use list_tools."}
        self.neighbours[holder]["balance"] += self.tools[tool]["deposit"]
        self.tools[tool]["borrowed_by"] = None
        return {"success": True, "balance": self.neighbours[holder]["balance"]}
