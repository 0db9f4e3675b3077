"""An agent as one step of a larger LangGraph workflow: it acts on a request, then its work is checked.

Run it from a checkout, offline:

    python examples/langgraph_workflow.py
"""

from typing import Any, Literal

from langchain.agents import AgentState
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from langchain_envscaler import Catalog, Episode, create_tool_agent
from langchain_envscaler.graphs.reference import reference_model


class DeskState(AgentState[Any]):
    """What the workflow keeps: the agent's messages, and the reward of its work."""

    reward: float


def create_workflow(episode: Episode) -> Any:
    """A workflow over one episode: the agent works, the checks decide whether a person must look at it.

    The model is the reference policy, so that the story needs no weights. In your own workflow it is
    `ChatEnvScaler(model="XXHStudyHard/EnvScaler-Qwen3-4B")`, or any other chat model.
    """
    assert episode.scenario is not None
    agent = create_tool_agent(reference_model(episode.scenario), episode)

    async def check(state: DeskState) -> dict[str, Any]:
        return {"reward": (await episode.aevaluate()).reward}

    def is_solved(state: DeskState) -> Literal["thank", "escalate"]:
        return "thank" if state["reward"] == 1.0 else "escalate"

    def thank(state: DeskState) -> dict[str, Any]:
        return {"messages": [AIMessage("All done, and checked.")]}

    def escalate(state: DeskState) -> dict[str, Any]:
        return {"messages": [AIMessage("A colleague will look at this.")]}

    workflow = StateGraph(DeskState)
    workflow.add_node("agent", agent)
    workflow.add_node("check", check)
    workflow.add_node("thank", thank)
    workflow.add_node("escalate", escalate)
    workflow.add_edge(START, "agent")
    workflow.add_edge("agent", "check")
    workflow.add_conditional_edges("check", is_solved)
    workflow.add_edge("thank", END)
    workflow.add_edge("escalate", END)
    return workflow.compile(checkpointer=InMemorySaver())


async def main() -> None:
    """Solve a task of the library desk, and show the conversation."""
    catalog = Catalog.bundled()
    async with await catalog.astart("library_desk", "library_desk-06-a-late-return") as episode:
        assert episode.scenario is not None
        workflow = create_workflow(episode)
        state = await workflow.ainvoke(
            {"messages": [HumanMessage(episode.scenario.task)]}, {"configurable": {"thread_id": "story"}}
        )
    for message in state["messages"]:
        print(f"{message.type}: {message.text or message.tool_calls}")
    print(f"reward: {state['reward']}")


if __name__ == "__main__":
    import asyncio

    asyncio.run(main())
