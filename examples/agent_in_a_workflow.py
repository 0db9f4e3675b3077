"""Our agent as one node of a larger workflow: a desk that first sorts a request, then acts, then reports.

Run it from a checkout, offline:

    python examples/agent_in_a_workflow.py
"""

from typing import Any

from langchain.agents import AgentState
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from langchain_envscaler import Catalog, Episode, create_tool_agent
from langchain_envscaler.graphs.reference import reference_model

TASK = "library_desk-01-return-a-book"


class DeskState(AgentState[Any]):
    """The workflow's own state; the agent shares its messages."""

    kind: str
    report: str


def sort_request(state: DeskState) -> dict[str, str]:
    """Tell what kind of request it is; a model could do this as well."""
    asked = state["messages"][-1].text.lower()
    return {"kind": "return" if "check it in" in asked or "handed in" in asked else "other"}


def turn_away(state: DeskState) -> dict[str, Any]:
    """What this desk does not do."""
    return {"messages": [AIMessage("This desk only takes books back.")]}


def report(state: DeskState) -> dict[str, str]:
    """Sum up what was done."""
    calls = [
        call["name"] for one in state["messages"] if isinstance(one, AIMessage) for call in one.tool_calls
    ]
    return {"report": f"{state['kind']}: {', '.join(calls) or 'nothing'} done"}


def make_desk(episode: Episode) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The workflow around an agent that works in the episode."""
    assert episode.scenario is not None
    # The agent keeps its state in the workflow's checkpoints, so that all of it is one thread.
    agent = create_tool_agent(reference_model(episode.scenario), episode, name="librarian")
    desk = StateGraph(DeskState)
    desk.add_node("sort", sort_request)
    desk.add_node("librarian", agent)
    desk.add_node("turn_away", turn_away)
    desk.add_node("report", report)
    desk.add_edge(START, "sort")
    desk.add_conditional_edges(
        "sort", lambda state: "librarian" if state["kind"] == "return" else "turn_away"
    )
    desk.add_edge("librarian", "report")
    desk.add_edge("turn_away", "report")
    desk.add_edge("report", END)
    return desk.compile(checkpointer=InMemorySaver())


def main() -> None:
    """Let a reader hand in a book, and ask for something else."""
    with Catalog.bundled().start("library_desk", TASK) as episode:
        desk = make_desk(episode)
        assert episode.scenario is not None
        for number, text in enumerate([episode.scenario.task, "Can I borrow a bicycle?"]):
            state = desk.invoke(
                {"messages": [HumanMessage(text)]},
                {"configurable": {"thread_id": str(number)}},
                # No crash may lose what the model has said.
                durability="sync",
            )
            print(f"{text}\n  {state['report']}")
        print(f"reward: {episode.evaluate().reward}")


if __name__ == "__main__":
    main()
