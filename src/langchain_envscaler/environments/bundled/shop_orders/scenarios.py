"""Scenarios at the shop's customer service desk, from two calls to twelve."""

from functools import partial

from langchain_envscaler.environments.bundled._scenarios import only_changed, same_except, scenario
from langchain_envscaler.environments.bundled.shop_orders.base_state import BASE
from langchain_envscaler.environments.metadata import Scenario

__all__ = ["SCENARIOS"]

_scenario = partial(scenario, "shop_orders", "ShopOrderDesk", state=BASE)

SCENARIOS: list[Scenario] = [
    _scenario(
        "01-cancel-an-order",
        task="Maren Holt no longer needs what she ordered with O-1001. Please cancel that order for her.",
        checks=[
            ("Is order O-1001 cancelled?", 'final_state["orders"]["O-1001"]["status"] == "cancelled"'),
            (
                "Are its mugs and its teapot back in stock?",
                'final_state["products"]["P-210"]["stock"] == 46 and final_state["products"]["P-201"]["stock"] == 9',
            ),
            (
                "Was nothing refunded, and nothing else changed?",
                only_changed("O-1001", "P-210", "P-201"),
            ),
        ],
        reference=[
            ("get_order", {"order_id": "O-1001"}),
            ("cancel_order", {"order_id": "O-1001"}),
        ],
    ),
    _scenario(
        "02-credit-for-a-return",
        task="""
            The sleeping bag that Owen Castell announced as return R-501 has just reached the warehouse. He would
            like its price as store credit, so that he does not lose the return fee.
        """,
        checks=[
            ("Is return R-501 refunded?", 'final_state["returns"]["R-501"]["status"] == "refunded"'),
            (
                "Has Owen Castell 129.00 euros of store credit?",
                'final_state["customers"]["C-107"]["store_credit"] == 129.0',
            ),
            ("Is the sleeping bag back in stock?", 'final_state["products"]["P-209"]["stock"] == 5'),
            (
                "Was nothing else changed?",
                only_changed("R-501", "C-107", "P-209", refunds=1),
            ),
        ],
        reference=[
            ("receive_return", {"return_id": "R-501"}),
            ("issue_refund", {"return_id": "R-501", "method": "store_credit"}),
        ],
    ),
    _scenario(
        "03-deliver-to-the-office",
        task="""
            Idris Bello is at work all week. Please have the order of his that has not been packed yet sent to his
            office instead of his home.
        """,
        checks=[
            (
                "Does order O-1002 go to the office?",
                'final_state["orders"]["O-1002"]["address"] == "Unit 9, Foundry Yard, Ashford"',
            ),
            (
                "Was nothing else changed?",
                only_changed("O-1002"),
            ),
        ],
        reference=[
            ("find_customer", {"query": "Idris Bello"}),
            ("list_orders", {"customer_id": "C-102", "status": "placed"}),
            ("change_address", {"order_id": "O-1002", "address_label": "office"}),
        ],
    ),
    _scenario(
        "04-a-forgotten-coupon",
        task="""
            Tove Lindqvist (tove.lindqvist@example.org) placed an order today and forgot to enter her code SPRING10.
            Please apply it to that order.
        """,
        checks=[
            (
                "Does order O-1004 carry SPRING10?",
                'final_state["orders"]["O-1004"]["coupon_code"] == "SPRING10"',
            ),
            ("Does order O-1004 cost 79.74 euros?", 'final_state["orders"]["O-1004"]["total"] == 79.74'),
            (
                "Was nothing else changed?",
                only_changed("O-1004", "SPRING10"),
            ),
        ],
        reference=[
            ("find_customer", {"query": "tove.lindqvist@example.org"}),
            ("list_orders", {"customer_id": "C-103", "status": "placed"}),
            ("apply_coupon", {"order_id": "O-1004", "code": "SPRING10"}),
        ],
    ),
    _scenario(
        "05-a-broken-lamp",
        task="""
            Rafael Moura writes that the switch of the desk lamp which we delivered to him last week does not work.
            Please announce its return, so that he gets a label. The lamp has not been sent back yet.
        """,
        checks=[
            (
                "Is the lamp of order O-1005 announced as a defective return?",
                """any(
                    (record["order_id"], record["product_id"], record["quantity"], record["reason"], record["status"])
                    == ("O-1005", "P-205", 1, "defective", "requested")
                    for record in final_state["returns"].values()
                )""",
            ),
            (
                "Is it the only new return, and nothing was settled yet?",
                only_changed(returns=1),
            ),
        ],
        reference=[
            ("find_customer", {"query": "Rafael Moura"}),
            ("list_orders", {"customer_id": "C-104", "status": "delivered"}),
            ("get_order", {"order_id": "O-1005"}),
            (
                "open_return",
                {"order_id": "O-1005", "product_id": "P-205", "quantity": 1, "reason": "defective"},
            ),
        ],
    ),
    _scenario(
        "06-too-late-to-return",
        task="""
            Maren Holt (maren.holt@example.com) would like to return the trekking poles that she has never used. If
            she can still do that, announce the return. If her return period is over, give her the largest goodwill
            credit that the rules allow for that order instead.
        """,
        checks=[
            (
                "Was 6.45 euros of goodwill given for order O-1009?",
                'final_state["orders"]["O-1009"]["goodwill"] == 6.45',
            ),
            (
                "Has Maren Holt 6.45 euros of store credit?",
                'final_state["customers"]["C-101"]["store_credit"] == 6.45',
            ),
            (
                "Was no return announced, and nothing else changed?",
                only_changed("O-1009", "C-101"),
            ),
        ],
        reference=[
            ("find_customer", {"query": "maren.holt@example.com"}),
            ("list_orders", {"customer_id": "C-101", "status": "delivered"}),
            ("get_order", {"order_id": "O-1009"}),
            ("grant_goodwill", {"order_id": "O-1009", "amount": 6.45}),
        ],
    ),
    _scenario(
        "07-a-lost-parcel",
        task="""
            Owen Castell is still waiting for the parcel with his camping stove. If it counts as lost by our rules,
            hand the order to a supervisor as a lost parcel, and credit him the most goodwill that you may.
        """,
        checks=[
            (
                "Is order O-1007 escalated as a lost parcel?",
                """[
                    (each["order_id"], each["topic"])
                    for key, each in final_state["escalations"].items() if key not in initial_state["escalations"]
                ] == [("O-1007", "lost_parcel")]""",
            ),
            (
                "Has Owen Castell 9.38 euros of store credit?",
                'final_state["customers"]["C-107"]["store_credit"] == 9.38',
            ),
            (
                "Was nothing else changed?",
                only_changed("O-1007", "C-107", escalations=1),
            ),
        ],
        reference=[
            ("find_customer", {"query": "Owen Castell"}),
            ("list_orders", {"customer_id": "C-107", "status": "shipped"}),
            ("get_order", {"order_id": "O-1007"}),
            ("escalate_order", {"order_id": "O-1007", "topic": "lost_parcel"}),
            ("grant_goodwill", {"order_id": "O-1007", "amount": 9.38}),
        ],
    ),
    _scenario(
        "08-more-notebooks",
        task="""
            Maren Holtz has an order waiting to be packed. She would like five dotted notebooks in it instead of two,
            and two blue enamel mugs on top.
        """,
        checks=[
            (
                "Are there five notebooks in order O-1003?",
                'final_state["orders"]["O-1003"]["items"]["P-213"]["quantity"] == 5',
            ),
            (
                "Are there two blue mugs in order O-1003?",
                'final_state["orders"]["O-1003"]["items"]["P-210"]["quantity"] == 2',
            ),
            ("Does order O-1003 cost 82.30 euros?", 'final_state["orders"]["O-1003"]["total"] == 82.3'),
            (
                "Was nothing else changed?",
                only_changed("O-1003", "P-213", "P-210"),
            ),
        ],
        reference=[
            ("find_customer", {"query": "Maren Holtz"}),
            ("list_orders", {"customer_id": "C-106", "status": "placed"}),
            ("get_order", {"order_id": "O-1003"}),
            ("search_products", {"query": "mug"}),
            ("set_item_quantity", {"order_id": "O-1003", "product_id": "P-213", "quantity": 5}),
            ("set_item_quantity", {"order_id": "O-1003", "product_id": "P-210", "quantity": 2}),
        ],
    ),
    _scenario(
        "09-a-cracked-teapot",
        task="""
            The cracked teapot that Tove Lindqvist sent back has arrived at the warehouse. She would like a new one,
            not her money. She also wants to return the raincoat from the same order because she no longer likes it:
            announce that return only if our rules allow it.
        """,
        checks=[
            ("Is return R-503 replaced?", 'final_state["returns"]["R-503"]["status"] == "replaced"'),
            (
                "Is one teapot on its way to Tove Lindqvist, free of charge?",
                """[
                    (order["customer_id"], list(order["items"]), order["total"])
                    for key, order in final_state["orders"].items() if key not in initial_state["orders"]
                ] == [("C-103", ["P-201"], 0.0)]""",
            ),
            (
                "Was the raincoat left alone, and nothing refunded?",
                only_changed("R-503", "P-201", orders=1),
            ),
        ],
        reference=[
            ("find_customer", {"query": "Tove Lindqvist"}),
            ("list_orders", {"customer_id": "C-103", "status": "delivered"}),
            ("get_order", {"order_id": "O-1010"}),
            ("search_products", {"query": "raincoat"}),
            ("receive_return", {"return_id": "R-503"}),
            ("send_replacement", {"return_id": "R-503"}),
        ],
    ),
    _scenario(
        "10-slate-instead-of-sand",
        task="""
            Priya Nair picked the wrong colour: the order she placed today should have the slate linen tablecloth
            instead of the sand one. And it is a present, so please send it to her parents' address.
        """,
        checks=[
            (
                "Does order O-1016 contain one slate tablecloth and nothing else?",
                'final_state["orders"]["O-1016"]["items"] == {"P-204": {"quantity": 1, "unit_price": 59.0}}',
            ),
            (
                "Does order O-1016 go to her parents?",
                'final_state["orders"]["O-1016"]["address"] == "7 Rose Close, Brindle"',
            ),
            (
                "Is the sand tablecloth back in stock and the slate one taken from it?",
                'final_state["products"]["P-203"]["stock"] == 3 and final_state["products"]["P-204"]["stock"] == 5',
            ),
            (
                "Was nothing else changed?",
                only_changed("O-1016", "P-203", "P-204"),
            ),
        ],
        reference=[
            ("find_customer", {"query": "Priya Nair"}),
            ("list_orders", {"customer_id": "C-105", "status": "placed"}),
            ("get_order", {"order_id": "O-1016"}),
            ("search_products", {"query": "tablecloth"}),
            ("set_item_quantity", {"order_id": "O-1016", "product_id": "P-204", "quantity": 1}),
            ("set_item_quantity", {"order_id": "O-1016", "product_id": "P-203", "quantity": 0}),
            ("change_address", {"order_id": "O-1016", "address_label": "parents"}),
        ],
    ),
    _scenario(
        "11-a-gift-by-phone",
        task="""
            Idris Bello is on the phone. He wants to give his sister one pair of trekking poles and two sleeping bags,
            in one order, sent to 40 Harbour Terrace, Westport; save that address in his account as "sister". Use the
            coupon that saves him the most.
        """,
        checks=[
            (
                "Is the sister's address saved?",
                'final_state["customers"]["C-102"]["addresses"]["sister"] == "40 Harbour Terrace, Westport"',
            ),
            (
                "Does the one new order hold one pair of poles and two sleeping bags, and go to the sister?",
                """[
                    (
                        order["customer_id"],
                        {key: item["quantity"] for key, item in order["items"].items()},
                        order["address"],
                    )
                    for key, order in final_state["orders"].items() if key not in initial_state["orders"]
                ] == [("C-102", {"P-207": 1, "P-209": 2}, "40 Harbour Terrace, Westport")]""",
            ),
            (
                "Does it carry the coupon OUTDOOR20?",
                'final_state["orders"]["O-1017"]["coupon_code"] == "OUTDOOR20" and final_state["orders"]["O-1017"]["total"] == 258.0',
            ),
            ("Was nothing else changed?", only_changed("C-102", "P-207", "P-209", "OUTDOOR20", orders=1)),
        ],
        reference=[
            ("find_customer", {"query": "Idris Bello"}),
            ("search_products", {"query": "trekking poles"}),
            ("search_products", {"query": "sleeping bag"}),
            (
                "add_address",
                {"customer_id": "C-102", "label": "sister", "address": "40 Harbour Terrace, Westport"},
            ),
            (
                "place_order",
                {"customer_id": "C-102", "product_id": "P-207", "quantity": 1, "address_label": "sister"},
            ),
            ("set_item_quantity", {"order_id": "O-1017", "product_id": "P-209", "quantity": 2}),
            ("list_coupons", {}),
            ("apply_coupon", {"order_id": "O-1017", "code": "OUTDOOR20"}),
        ],
    ),
    _scenario(
        "12-a-tent-above-the-limit",
        task="""
            Two things from Owen Castell reached the warehouse this morning: the sleeping bag whose return he announced
            on 16 March, and his tent, which has a torn seam and which nobody announced. Please book both in as
            received. Refund to his original payment what the desk may refund, and escalate what is above our limit.
        """,
        checks=[
            (
                "Is the sleeping bag refunded to the original payment, less the fee?",
                """[
                    (refund["return_id"], refund["amount"], refund["method"])
                    for key, refund in final_state["refunds"].items() if key not in initial_state["refunds"]
                ] == [("R-501", 124.05, "original_payment")]""",
            ),
            (
                "Is the tent booked in as a defective return and not settled?",
                """[
                    (record["order_id"], record["product_id"], record["quantity"], record["reason"], record["status"])
                    for key, record in final_state["returns"].items() if key not in initial_state["returns"]
                ] == [("O-1008", "P-208", 1, "defective", "received")]""",
            ),
            (
                "Is order O-1008 escalated because of the refund limit?",
                """[
                    (each["order_id"], each["topic"])
                    for key, each in final_state["escalations"].items() if key not in initial_state["escalations"]
                ] == [("O-1008", "refund_limit")]""",
            ),
            (
                "Did only the sleeping bag go back to stock?",
                'final_state["products"]["P-209"]["stock"] == 5 and ' + same_except("products", "P-209"),
            ),
            (
                "Was nothing else changed?",
                only_changed("R-501", "P-209", returns=1, refunds=1, escalations=1),
            ),
        ],
        reference=[
            ("find_customer", {"query": "Owen Castell"}),
            ("list_orders", {"customer_id": "C-107", "status": "delivered"}),
            ("get_order", {"order_id": "O-1008"}),
            ("receive_return", {"return_id": "R-501"}),
            ("issue_refund", {"return_id": "R-501", "method": "original_payment"}),
            (
                "open_return",
                {"order_id": "O-1008", "product_id": "P-208", "quantity": 1, "reason": "defective"},
            ),
            ("receive_return", {"return_id": "R-504"}),
            ("escalate_order", {"order_id": "O-1008", "topic": "refund_limit"}),
        ],
    ),
    _scenario(
        "13-a-list-from-priya",
        task="""
            Priya Nair has sent us a list. Please do all of it:

            - The two tablecloths that are packed are no longer needed: cancel that order.
            - She changed her mind about the trekking poles from January. They are already back at our warehouse;
            announce and receive the return if she is still in time, and refund it to her original payment.
            - The order she placed today should go to her parents' address.
            - She would like one brass desk lamp, sent home, with the coupon that saves her the most.
        """,
        checks=[
            ("Is order O-1011 cancelled?", 'final_state["orders"]["O-1011"]["status"] == "cancelled"'),
            (
                "Are exactly the cancelled order and the poles refunded, the poles at their discounted price?",
                """sorted(
                    (refund["order_id"], refund["amount"], refund["method"])
                    for key, refund in final_state["refunds"].items() if key not in initial_state["refunds"]
                ) == [("O-1006", 51.6, "original_payment"), ("O-1011", 118.0, "original_payment")]""",
            ),
            (
                "Are the poles returned and back in stock?",
                """[
                    (record["order_id"], record["product_id"], record["reason"], record["status"])
                    for key, record in final_state["returns"].items() if key not in initial_state["returns"]
                ] == [("O-1006", "P-207", "changed_mind", "refunded")]
                and final_state["products"]["P-207"]["stock"] == 10""",
            ),
            (
                "Does order O-1016 go to her parents?",
                'final_state["orders"]["O-1016"]["address"] == "7 Rose Close, Brindle"',
            ),
            (
                "Is one brass desk lamp ordered to her home with SPRING10?",
                """[
                    (order["customer_id"], list(order["items"]), order["address"], order["coupon_code"], order["total"])
                    for key, order in final_state["orders"].items() if key not in initial_state["orders"]
                ] == [("C-105", ["P-205"], "31 Hilltop Road, Easton", "SPRING10", 80.1)]""",
            ),
            (
                "Was nothing else changed?",
                only_changed(
                    "O-1011", "O-1016", "P-204", "P-205", "P-207", "SPRING10", orders=1, returns=1, refunds=2
                ),
            ),
        ],
        reference=[
            ("find_customer", {"query": "Priya Nair"}),
            ("list_orders", {"customer_id": "C-105"}),
            ("cancel_order", {"order_id": "O-1011"}),
            ("get_order", {"order_id": "O-1006"}),
            (
                "open_return",
                {"order_id": "O-1006", "product_id": "P-207", "quantity": 1, "reason": "changed_mind"},
            ),
            ("receive_return", {"return_id": "R-504"}),
            ("issue_refund", {"return_id": "R-504", "method": "original_payment"}),
            ("change_address", {"order_id": "O-1016", "address_label": "parents"}),
            ("search_products", {"query": "desk lamp"}),
            (
                "place_order",
                {"customer_id": "C-105", "product_id": "P-205", "quantity": 1, "address_label": "home"},
            ),
            ("list_coupons", {}),
            ("apply_coupon", {"order_id": "O-1017", "code": "SPRING10"}),
        ],
    ),
]
