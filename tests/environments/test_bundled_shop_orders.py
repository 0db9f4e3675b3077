"""The shop's desk keeps its rules: what it refuses and why, and what orders and refunds come to."""

from collections.abc import Iterator
from typing import Any

import pytest

from langchain_envscaler.environments.bundled.shop_orders.base_state import BASE
from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.episode import Episode

Call = tuple[str, dict[str, Any]]


@pytest.fixture(scope="module")
def shared_desk() -> Iterator[tuple[Episode, str]]:
    with Catalog.bundled().start("shop_orders", init_config=BASE) as episode:
        yield episode, episode.snapshot()


@pytest.fixture
def desk(shared_desk: tuple[Episode, str]) -> Episode:
    """The desk on an ordinary day."""
    episode, morning = shared_desk
    episode.restore(morning)
    return episode


def done(desk: Episode, call: Call) -> dict[str, Any]:
    data = desk.call(*call).data
    assert isinstance(data, dict)
    assert data["success"] is True, data
    return data


def quantity(order_id: str, product_id: str, pieces: Any) -> Call:
    return "set_item_quantity", {"order_id": order_id, "product_id": product_id, "quantity": pieces}


def coupon(order_id: str, code: str) -> Call:
    return "apply_coupon", {"order_id": order_id, "code": code}


def give_back(order_id: str, product_id: str, reason: str, pieces: int = 1) -> Call:
    arguments = {"order_id": order_id, "product_id": product_id, "quantity": pieces, "reason": reason}
    return "open_return", arguments


def receive(return_id: str) -> Call:
    return "receive_return", {"return_id": return_id}


def refund(return_id: str, method: str = "original_payment") -> Call:
    return "issue_refund", {"return_id": return_id, "method": method}


def escalate(order_id: str, topic: str) -> Call:
    return "escalate_order", {"order_id": order_id, "topic": topic}


def goodwill(order_id: str, amount: float) -> Call:
    return "grant_goodwill", {"order_id": order_id, "amount": amount}


@pytest.mark.parametrize(
    ("before", "call", "reason"),
    [
        pytest.param(
            [], quantity("O-1011", "P-204", 1), "only placed orders", id="a packed order is changed"
        ),
        pytest.param([], quantity("O-1002", "P-205", 0), "use cancel_order", id="the last product goes"),
        pytest.param([], quantity("O-1002", "P-206", 1), "Only 0 more", id="a product out of stock"),
        pytest.param([], quantity("O-1002", "P-210", 11), "from 0 to 10", id="eleven pieces"),
        pytest.param([], quantity("O-1002", "P-210", "2"), "whole number", id="a number written as text"),
        pytest.param([], coupon("O-1002", "WINTER20"), "expired on 2026-02-28", id="an expired coupon"),
        pytest.param([], coupon("O-1002", "KITCHEN15"), "kitchen products worth 60.0", id="another category"),
        pytest.param([], coupon("O-1001", "WELCOME5"), "already used", id="a coupon used before"),
        pytest.param(
            [coupon("O-1004", "SPRING10"), quantity("O-1004", "P-211", 1)],
            quantity("O-1004", "P-202", 0),
            "SPRING10 needs products worth 40.0, but only 9.9",
            id="an order falls below its coupon's minimum",
        ),
        pytest.param([], ("cancel_order", {"order_id": "O-1007"}), "is shipped", id="a parcel on its way"),
        pytest.param([], give_back("O-1007", "P-214", "defective"), "only delivered", id="not delivered yet"),
        pytest.param([], give_back("O-1009", "P-207", "changed_mind"), "more than 30 days", id="too late"),
        pytest.param(
            [], give_back("O-1010", "P-212", "changed_mind"), "final-sale", id="a final-sale product"
        ),
        pytest.param([], give_back("O-1008", "P-209", "defective", 2), "from 1 to 1", id="returned twice"),
        pytest.param([], refund("R-501"), "use receive_return", id="a refund before the return arrived"),
        pytest.param([refund("R-502")], refund("R-502"), "already been refunded", id="a second refund"),
        pytest.param(
            [receive("R-501")],
            ("send_replacement", {"return_id": "R-501"}),
            "use issue_refund",
            id="a replacement for a change of mind",
        ),
        pytest.param(
            [give_back("O-1008", "P-208", "defective"), receive("R-504")],
            refund("R-504"),
            "219.0 is above the desk's limit of 200.0: use escalate_order on O-1008",
            id="a refund above the limit",
        ),
        pytest.param(
            [], escalate("O-1008", "refund_limit"), "no received return above", id="nothing to refund"
        ),
        pytest.param(
            [], escalate("O-1013", "lost_parcel"), "more than 10 days ago", id="a parcel not lost yet"
        ),
        pytest.param([], escalate("O-1015", "complaint"), "already been escalated", id="escalated before"),
        pytest.param([], goodwill("O-1007", 9.39), "from 0.01 to 9.38", id="too much goodwill"),
        pytest.param(
            [goodwill("O-1007", 1)], goodwill("O-1007", 1), "already been given", id="goodwill twice"
        ),
        pytest.param([], goodwill("O-1001", 1), "is placed", id="goodwill before shipping"),
    ],
)
def test_the_desk_refuses_and_changes_nothing(
    desk: Episode, before: list[Call], call: Call, reason: str
) -> None:
    for earlier in before:
        done(desk, earlier)
    state = desk.state()

    observation = desk.call(*call)

    assert isinstance(observation.data, dict)
    assert observation.data["success"] is False
    assert reason in str(observation.data["error"])
    assert desk.state() == state


@pytest.mark.parametrize(
    ("before", "return_id", "method", "amount"),
    [
        pytest.param([receive("R-501")], "R-501", "original_payment", 124.05, id="less the return fee"),
        pytest.param([receive("R-501")], "R-501", "store_credit", 129.0, id="no fee as store credit"),
        pytest.param([receive("R-503")], "R-503", "original_payment", 31.54, id="its share of a discount"),
        pytest.param(
            [give_back("O-1006", "P-207", "changed_mind"), receive("R-504")],
            "R-504",
            "original_payment",
            51.6,
            id="no fee for a plus customer, 52 days after delivery",
        ),
    ],
)
def test_a_refund_is_what_was_paid(
    desk: Episode, before: list[Call], return_id: str, method: str, amount: float
) -> None:
    for earlier in before:
        done(desk, earlier)
    assert done(desk, refund(return_id, method))["refund"]["amount"] == amount


def test_shipping_is_free_from_fifty_euros_after_discount(desk: Episode) -> None:
    order = done(desk, quantity("O-1003", "P-213", 4))["order"]
    assert (order["shipping_fee"], order["total"]) == (0.0, 50.0)
    order = done(desk, quantity("O-1003", "P-213", 3))["order"]
    assert (order["shipping_fee"], order["total"]) == (4.95, 42.45)


def test_a_replaced_or_cancelled_coupon_can_be_used_again(desk: Episode) -> None:
    done(desk, coupon("O-1004", "SPRING10"))
    done(desk, coupon("O-1004", "WELCOME5"))
    assert "C-103" not in desk.state()["coupons"]["SPRING10"]["used_by"]
    done(desk, ("cancel_order", {"order_id": "O-1004"}))
    assert "C-103" not in desk.state()["coupons"]["WELCOME5"]["used_by"]


def test_a_defective_return_does_not_go_back_to_stock(desk: Episode) -> None:
    done(desk, receive("R-503"))
    assert desk.state()["products"]["P-201"]["stock"] == BASE["products"]["P-201"]["stock"]


def test_the_recorded_orders_cost_what_the_rules_say() -> None:
    for order in BASE["orders"].values():
        goods = sum(item["quantity"] * item["unit_price"] for item in order["items"].values())
        goods -= order["discount"]
        free = goods >= 50 or BASE["customers"][order["customer_id"]]["tier"] == "plus"
        assert order["shipping_fee"] == (0.0 if free else 4.95), order["order_id"]
        assert order["total"] == pytest.approx(goods + order["shipping_fee"]), order["order_id"]
