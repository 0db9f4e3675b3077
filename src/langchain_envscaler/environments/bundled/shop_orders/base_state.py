"""The shop on an ordinary day: what every scenario starts from."""

from typing import Any

__all__ = ["BASE"]


def _customer(
    customer_id: str, name: str, email: str, tier: str, credit: float, **addresses: str
) -> dict[str, Any]:
    return {
        "customer_id": customer_id,
        "name": name,
        "email": email,
        "tier": tier,
        "addresses": addresses,
        "store_credit": credit,
    }


def _product(
    product_id: str, name: str, category: str, price: float, stock: int, final_sale: bool = False
) -> dict[str, Any]:
    return {
        "product_id": product_id,
        "name": name,
        "category": category,
        "price": price,
        "stock": stock,
        "final_sale": final_sale,
    }


def _coupon(
    code: str, percent_off: int, minimum: float, category: str, valid_until: str, *used_by: str
) -> dict[str, Any]:
    return {
        "code": code,
        "percent_off": percent_off,
        "minimum": minimum,
        "category": category,
        "valid_until": valid_until,
        "used_by": list(used_by),
    }


def _order(
    order_id: str,
    customer_id: str,
    status: str,
    placed_on: str,
    address: str,
    items: dict[str, tuple[int, float]],
    total: float,
    *,
    shipped_on: str | None = None,
    delivered_on: str | None = None,
    coupon_code: str | None = None,
    discount: float = 0.0,
    shipping_fee: float = 0.0,
) -> dict[str, Any]:
    return {
        "order_id": order_id,
        "customer_id": customer_id,
        "status": status,
        "placed_on": placed_on,
        "shipped_on": shipped_on,
        "delivered_on": delivered_on,
        "address": address,
        "items": {
            key: {"quantity": quantity, "unit_price": price} for key, (quantity, price) in items.items()
        },
        "coupon_code": coupon_code,
        "discount": discount,
        "shipping_fee": shipping_fee,
        "total": total,
        "goodwill": 0.0,
    }


def _return(
    return_id: str, order_id: str, product_id: str, quantity: int, reason: str, status: str, opened_on: str
) -> dict[str, Any]:
    return {
        "return_id": return_id,
        "order_id": order_id,
        "product_id": product_id,
        "quantity": quantity,
        "reason": reason,
        "status": status,
        "opened_on": opened_on,
    }


def _by_id(key: str, records: list[dict[str, Any]]) -> dict[str, Any]:
    return {record[key]: record for record in records}


BASE: dict[str, Any] = {
    "today": "2026-03-18",
    "refund_limit": 200.0,
    "customers": _by_id(
        "customer_id",
        [
            _customer(
                "C-101", "Maren Holt", "maren.holt@example.com", "standard", 0.0, home="14 Quayside, Westport"
            ),
            _customer(
                "C-102",
                "Idris Bello",
                "idris.bello@example.com",
                "plus",
                12.5,
                home="5 Mill Lane, Ashford",
                office="Unit 9, Foundry Yard, Ashford",
            ),
            _customer(
                "C-103",
                "Tove Lindqvist",
                "tove.lindqvist@example.org",
                "standard",
                0.0,
                home="88 Orchard Street, Northam",
            ),
            _customer(
                "C-104",
                "Rafael Moura",
                "rafael.moura@example.com",
                "standard",
                5.0,
                home="2 Canal View, Westport",
            ),
            _customer(
                "C-105",
                "Priya Nair",
                "priya.nair@example.org",
                "plus",
                0.0,
                home="31 Hilltop Road, Easton",
                parents="7 Rose Close, Brindle",
            ),
            _customer(
                "C-106",
                "Maren Holtz",
                "m.holtz@example.org",
                "standard",
                0.0,
                home="120 Station Road, Easton",
            ),
            _customer(
                "C-107",
                "Owen Castell",
                "owen.castell@example.com",
                "standard",
                0.0,
                home="63 Park Row, Northam",
                cottage="Shepherd's Rest, Glen Farrow",
            ),
        ],
    ),
    "products": _by_id(
        "product_id",
        [
            _product("P-201", "Ceramic teapot", "kitchen", 34.9, 8),
            _product("P-202", "Cast-iron pan", "kitchen", 49.0, 5),
            _product("P-203", "Linen tablecloth, sand", "home", 59.0, 2),
            _product("P-204", "Linen tablecloth, slate", "home", 59.0, 6),
            _product("P-205", "Desk lamp, brass", "office", 89.0, 3),
            _product("P-206", "Desk lamp, black", "office", 79.0, 0),
            _product("P-207", "Trekking poles", "outdoor", 64.5, 9),
            _product("P-208", "Two-person tent", "outdoor", 219.0, 2),
            _product("P-209", "Sleeping bag", "outdoor", 129.0, 4),
            _product("P-210", "Enamel mug, blue", "kitchen", 9.9, 40),
            _product("P-211", "Enamel mug, white", "kitchen", 9.9, 25),
            _product("P-212", "Outlet raincoat", "outdoor", 39.0, 3, final_sale=True),
            _product("P-213", "Dotted notebook", "office", 12.5, 60),
            _product("P-214", "Camping stove", "outdoor", 74.0, 5),
        ],
    ),
    "coupons": _by_id(
        "code",
        [
            _coupon("SPRING10", 10, 40.0, "", "2026-04-30", "C-106"),
            _coupon("KITCHEN15", 15, 60.0, "kitchen", "2026-03-31", "C-103"),
            _coupon("OUTDOOR20", 20, 150.0, "outdoor", "2026-03-31"),
            _coupon("WINTER20", 20, 100.0, "", "2026-02-28", "C-105"),
            _coupon("WELCOME5", 5, 0.0, "", "2026-12-31", "C-101", "C-104"),
        ],
    ),
    "orders": _by_id(
        "order_id",
        [
            _order(
                "O-1001",
                "C-101",
                "placed",
                "2026-03-17",
                "14 Quayside, Westport",
                {"P-210": (6, 9.9), "P-201": (1, 34.9)},
                94.3,
            ),
            _order(
                "O-1002", "C-102", "placed", "2026-03-16", "5 Mill Lane, Ashford", {"P-205": (1, 89.0)}, 89.0
            ),
            _order(
                "O-1003",
                "C-106",
                "placed",
                "2026-03-17",
                "120 Station Road, Easton",
                {"P-213": (2, 12.5)},
                29.95,
                shipping_fee=4.95,
            ),
            _order(
                "O-1004",
                "C-103",
                "placed",
                "2026-03-18",
                "88 Orchard Street, Northam",
                {"P-202": (1, 49.0), "P-211": (4, 9.9)},
                88.6,
            ),
            _order(
                "O-1005",
                "C-104",
                "delivered",
                "2026-03-02",
                "2 Canal View, Westport",
                {"P-205": (1, 89.0), "P-213": (3, 12.5)},
                126.5,
                shipped_on="2026-03-05",
                delivered_on="2026-03-09",
            ),
            _order(
                "O-1006",
                "C-105",
                "delivered",
                "2026-01-19",
                "31 Hilltop Road, Easton",
                {"P-203": (1, 59.0), "P-207": (1, 64.5)},
                98.8,
                shipped_on="2026-01-21",
                delivered_on="2026-01-25",
                coupon_code="WINTER20",
                discount=24.7,
            ),
            _order(
                "O-1007",
                "C-107",
                "shipped",
                "2026-03-02",
                "63 Park Row, Northam",
                {"P-214": (1, 74.0), "P-210": (2, 9.9)},
                93.8,
                shipped_on="2026-03-04",
            ),
            _order(
                "O-1008",
                "C-107",
                "delivered",
                "2026-03-05",
                "63 Park Row, Northam",
                {"P-208": (1, 219.0), "P-209": (2, 129.0)},
                477.0,
                shipped_on="2026-03-07",
                delivered_on="2026-03-11",
            ),
            _order(
                "O-1009",
                "C-101",
                "delivered",
                "2026-02-03",
                "14 Quayside, Westport",
                {"P-207": (1, 64.5)},
                64.5,
                shipped_on="2026-02-06",
                delivered_on="2026-02-10",
            ),
            _order(
                "O-1010",
                "C-103",
                "delivered",
                "2026-02-28",
                "88 Orchard Street, Northam",
                {"P-201": (2, 34.9), "P-212": (1, 39.0)},
                98.33,
                shipped_on="2026-03-03",
                delivered_on="2026-03-06",
                coupon_code="KITCHEN15",
                discount=10.47,
            ),
            _order(
                "O-1011",
                "C-105",
                "packed",
                "2026-03-15",
                "31 Hilltop Road, Easton",
                {"P-204": (2, 59.0)},
                118.0,
            ),
            _order(
                "O-1012",
                "C-104",
                "cancelled",
                "2026-02-20",
                "2 Canal View, Westport",
                {"P-206": (1, 79.0)},
                79.0,
            ),
            _order(
                "O-1013",
                "C-102",
                "shipped",
                "2026-03-11",
                "5 Mill Lane, Ashford",
                {"P-202": (1, 49.0)},
                49.0,
                shipped_on="2026-03-13",
            ),
            _order(
                "O-1014",
                "C-106",
                "delivered",
                "2026-03-10",
                "120 Station Road, Easton",
                {"P-211": (3, 9.9)},
                34.65,
                shipped_on="2026-03-11",
                delivered_on="2026-03-14",
                shipping_fee=4.95,
            ),
            _order(
                "O-1015",
                "C-106",
                "delivered",
                "2026-02-16",
                "120 Station Road, Easton",
                {"P-205": (1, 89.0)},
                80.1,
                shipped_on="2026-02-18",
                delivered_on="2026-02-21",
                coupon_code="SPRING10",
                discount=8.9,
            ),
            _order(
                "O-1016",
                "C-105",
                "placed",
                "2026-03-18",
                "31 Hilltop Road, Easton",
                {"P-203": (1, 59.0)},
                59.0,
            ),
        ],
    ),
    "returns": _by_id(
        "return_id",
        [
            _return("R-501", "O-1008", "P-209", 1, "changed_mind", "requested", "2026-03-16"),
            _return("R-502", "O-1014", "P-211", 1, "defective", "received", "2026-03-16"),
            _return("R-503", "O-1010", "P-201", 1, "defective", "requested", "2026-03-15"),
        ],
    ),
    "refunds": {
        "F-300": {
            "refund_id": "F-300",
            "order_id": "O-1012",
            "return_id": None,
            "amount": 79.0,
            "method": "original_payment",
            "issued_on": "2026-02-22",
        }
    },
    "escalations": {
        "E-70": {
            "escalation_id": "E-70",
            "order_id": "O-1015",
            "topic": "complaint",
            "opened_on": "2026-02-25",
        }
    },
    "counters": {"order": 1016, "return": 503, "refund": 300, "escalation": 70},
}
