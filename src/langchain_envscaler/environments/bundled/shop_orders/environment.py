"""The customer service desk of an online shop."""

from datetime import date
from typing import Any, Literal, TypedDict

__all__ = ["ShopOrderDesk"]

Tier = Literal["standard", "plus"]
OrderStatus = Literal["placed", "packed", "shipped", "delivered", "cancelled"]
ReturnReason = Literal["defective", "wrong_item", "changed_mind"]
RefundMethod = Literal["original_payment", "store_credit"]
EscalationTopic = Literal["refund_limit", "lost_parcel", "complaint"]

RETURN_REASONS = ("defective", "wrong_item", "changed_mind")
REFUND_METHODS = ("original_payment", "store_credit")
ESCALATION_TOPICS = ("refund_limit", "lost_parcel", "complaint")

MAX_QUANTITY = 10
SHIPPING_FEE = 4.95
FREE_SHIPPING_FROM = 50.00
RETURN_DAYS = {"standard": 30, "plus": 60}
RETURN_FEE = 4.95
LOST_AFTER_DAYS = 10
GOODWILL_SHARE = 0.10


class Customer(TypedDict):
    """A person with an account at the shop."""

    customer_id: str
    name: str
    email: str
    tier: Tier
    addresses: dict[str, str]
    store_credit: float


class Product(TypedDict):
    """An article on sale, with the number of pieces that can still be ordered."""

    product_id: str
    name: str
    category: str
    price: float
    stock: int
    final_sale: bool


class OrderItem(TypedDict):
    """A line of an order: how many pieces, and what one piece cost when it was ordered."""

    quantity: int
    unit_price: float


class Order(TypedDict):
    """What a customer bought; `items` maps product ids to lines."""

    order_id: str
    customer_id: str
    status: OrderStatus
    placed_on: str
    shipped_on: str | None
    delivered_on: str | None
    address: str
    items: dict[str, OrderItem]
    coupon_code: str | None
    discount: float
    shipping_fee: float
    total: float
    goodwill: float


class Coupon(TypedDict):
    """A discount code; an empty category means that it holds for every product."""

    code: str
    percent_off: int
    minimum: float
    category: str
    valid_until: str
    used_by: list[str]


class Return(TypedDict):
    """Pieces of one order line on their way back to the shop."""

    return_id: str
    order_id: str
    product_id: str
    quantity: int
    reason: ReturnReason
    status: Literal["requested", "received", "refunded", "replaced"]
    opened_on: str


class Refund(TypedDict):
    """Money given back, for a return or for a cancelled order."""

    refund_id: str
    order_id: str
    return_id: str | None
    amount: float
    method: RefundMethod
    issued_on: str


class Escalation(TypedDict):
    """An order handed to a supervisor."""

    escalation_id: str
    order_id: str
    topic: EscalationTopic
    opened_on: str


class ShopOrderDesk:
    """The customer service desk of an online shop, where an agent looks after customers' orders.

    An order is placed, packed, shipped and delivered; until it is packed its products, coupon and address
    can change. Products that come back are announced as a return, received by the warehouse, and then
    refunded or replaced. What the desk may not decide itself is escalated to a supervisor. Amounts are in
    euros; the current date is `today`.

    Rules:
    - Only orders with status placed can be changed: their products, their coupon, their address.
    - An order ships to an address saved under a label in its customer's account.
    - A product can be ordered up to its stock, and at most 10 pieces of it per order.
    - An order keeps at least one product; to drop the last one, cancel the order.
    - Shipping costs 4.95; it is free for plus customers and from 50.00 after discount.
    - An order carries one coupon, and a new one replaces it; a customer can use a code for one order only.
    - A coupon must not have expired and needs its minimum value of products (of its category, if it has one).
    - A change that takes an order below its coupon's minimum is refused.
    - Placed and packed orders can be cancelled; customers are charged on packing, so only cancelling a packed order refunds its total.
    - Delivered products can be returned within 30 days of delivery, by plus customers within 60 days.
    - Final-sale products can only be returned as defective or wrong_item.
    - A return is settled once, after the warehouse has received it, by a refund or by a replacement.
    - A refund is the price paid after discount; for changed_mind a fee of 4.95 is kept, except from plus customers or when paid as store credit.
    - A refund above the desk's refund_limit is not issued but escalated with topic refund_limit.
    - A replacement is sent free of charge for defective or wrong_item returns, if the product is in stock.
    - Defective products do not go back to stock when they are received.
    - A parcel counts as lost when it was shipped more than 10 days ago and has not been delivered.
    - Goodwill credit is given once per shipped or delivered order, at most 10 % of its total.
    - An order can be escalated once.
    """

    def __init__(self, init_config: dict[str, Any]) -> None:
        self.today: str = init_config.get("today", "2026-01-01")
        self.refund_limit: float = init_config.get("refund_limit", 200.0)
        self.customers: dict[str, Customer] = init_config.get("customers", {})
        self.products: dict[str, Product] = init_config.get("products", {})
        self.coupons: dict[str, Coupon] = init_config.get("coupons", {})
        self.orders: dict[str, Order] = init_config.get("orders", {})
        self.returns: dict[str, Return] = init_config.get("returns", {})
        self.refunds: dict[str, Refund] = init_config.get("refunds", {})
        self.escalations: dict[str, Escalation] = init_config.get("escalations", {})
        self.counters: dict[str, int] = init_config.get(
            "counters", {"order": 0, "return": 0, "refund": 0, "escalation": 0}
        )

    def find_customer(self, query: str) -> dict[str, Any]:
        """Find customers by id, email or part of the name.

        Args:
            query (str): Customer id, email address, or part of a name.

        Returns:
            dict: success and customers, or an error.
        """
        wanted = str(query).strip().lower()
        found = [
            customer
            for customer in self.customers.values()
            if wanted in (customer["customer_id"].lower(), customer["email"].lower())
            or (wanted and wanted in customer["name"].lower())
        ]
        if not found:
            return _refused(f"No customer matches {query!r}: try the email address or part of the name.")
        return {"success": True, "customers": found}

    def add_address(self, customer_id: str, label: str, address: str) -> dict[str, Any]:
        """Save a new address in a customer's account.

        Args:
            customer_id (str): The customer's id.
            label (str): A short name for the address, not in use yet.
            address (str): The full address.

        Returns:
            dict: success and addresses, or an error.
        """
        customer = self.customers.get(customer_id)
        if customer is None:
            return _unknown_customer(customer_id)
        label, address = str(label).strip(), str(address).strip()
        if not label or not address:
            return _refused("Neither label nor address may be empty.")
        if label in customer["addresses"]:
            return _refused(f"Customer {customer_id} already has an address {label!r}: choose another label.")
        customer["addresses"][label] = address
        return {"success": True, "addresses": customer["addresses"]}

    def search_products(self, query: str) -> dict[str, Any]:
        """Find products whose name or category contains a text.

        Args:
            query (str): Part of a product name, or a category.

        Returns:
            dict: success and products with price and stock, or an error.
        """
        wanted = str(query).strip().lower()
        found = [
            product
            for product in self.products.values()
            if wanted in product["name"].lower() or wanted == product["category"].lower()
        ]
        if not wanted or not found:
            categories = sorted({product["category"] for product in self.products.values()})
            return _refused(f"No product matches {query!r}: try one word, or a category of {categories}.")
        return {"success": True, "products": found}

    def list_coupons(self) -> dict[str, Any]:
        """List all coupon codes with their conditions.

        Returns:
            dict: success and coupons.
        """
        return {"success": True, "coupons": list(self.coupons.values())}

    def list_orders(self, customer_id: str, status: str = "") -> dict[str, Any]:
        """List a customer's orders.

        Args:
            customer_id (str): The customer's id.
            status (str): Only orders with this status; all if empty.

        Returns:
            dict: success, today's date and orders, or an error.
        """
        if customer_id not in self.customers:
            return _unknown_customer(customer_id)
        orders = [
            {
                "order_id": order["order_id"],
                "status": order["status"],
                "placed_on": order["placed_on"],
                "total": order["total"],
                "products": [self.products[product_id]["name"] for product_id in order["items"]],
            }
            for order in self.orders.values()
            if order["customer_id"] == customer_id and status in ("", order["status"])
        ]
        return {"success": True, "today": self.today, "orders": orders}

    def get_order(self, order_id: str) -> dict[str, Any]:
        """Show an order with its products, returns and refunds.

        Args:
            order_id (str): The order's id.

        Returns:
            dict: success and order, or an error.
        """
        order = self.orders.get(order_id)
        if order is None:
            return _unknown_order(order_id)
        items = {
            product_id: {"name": self.products[product_id]["name"], **item}
            for product_id, item in order["items"].items()
        }
        returns = [record for record in self.returns.values() if record["order_id"] == order_id]
        refunds = [record for record in self.refunds.values() if record["order_id"] == order_id]
        return {"success": True, "order": {**order, "items": items, "returns": returns, "refunds": refunds}}

    def place_order(
        self, customer_id: str, product_id: str, quantity: int, address_label: str
    ) -> dict[str, Any]:
        """Place an order for one product; more are added with set_item_quantity.

        Args:
            customer_id (str): The customer's id.
            product_id (str): The product's id.
            quantity (int): Number of pieces, 1 to 10.
            address_label (str): Label of the customer's saved address.

        Returns:
            dict: success and order, or an error.
        """
        customer = self.customers.get(customer_id)
        if customer is None:
            return _unknown_customer(customer_id)
        if address_label not in customer["addresses"]:
            return _unknown_address(customer, address_label)
        problem = self._quantity_problem(product_id, quantity, already=0, least=1)
        if problem:
            return _refused(problem)
        order = self._new_order(customer_id, customer["addresses"][address_label])
        self._put_item(order, product_id, quantity)
        self._reprice(order)
        return {"success": True, "order": order}

    def set_item_quantity(self, order_id: str, product_id: str, quantity: int) -> dict[str, Any]:
        """Set how many pieces of a product a placed order contains; adds the product or, with 0, removes it.

        Args:
            order_id (str): The order's id.
            product_id (str): The product's id.
            quantity (int): The new number of pieces, 0 to 10.

        Returns:
            dict: success and order, or an error.
        """
        order = self.orders.get(order_id)
        if order is None:
            return _unknown_order(order_id)
        if order["status"] != "placed":
            return _not_changeable(order)
        already = order["items"][product_id]["quantity"] if product_id in order["items"] else 0
        problem = self._quantity_problem(product_id, quantity, already, least=0)
        if problem:
            return _refused(problem)
        if quantity == already:
            return _refused(f"Order {order_id} already has {already} of {product_id}: nothing to change.")
        if quantity == 0 and len(order["items"]) == 1:
            return _refused(
                f"{product_id} is the last product of order {order_id}: use cancel_order instead."
            )
        if order["coupon_code"]:
            coupon = self.coupons[order["coupon_code"]]
            value = self._eligible_value(
                {**order["items"], product_id: self._item(order, product_id, quantity)}, coupon
            )
            if value < coupon["minimum"]:
                return _refused(
                    f"Coupon {coupon['code']} needs products worth {coupon['minimum']}, but only {value} would be "
                    "left: change another product first, or apply another coupon."
                )
        self._put_item(order, product_id, quantity)
        self._reprice(order)
        return {"success": True, "order": order}

    def apply_coupon(self, order_id: str, code: str) -> dict[str, Any]:
        """Apply a coupon code to a placed order, in place of one that it may have.

        Args:
            order_id (str): The order's id.
            code (str): The coupon code.

        Returns:
            dict: success and order, or an error.
        """
        order = self.orders.get(order_id)
        if order is None:
            return _unknown_order(order_id)
        coupon = self.coupons.get(code)
        if coupon is None:
            return _refused(f"No coupon {code!r}: use list_coupons to see the codes.")
        if order["status"] != "placed":
            return _not_changeable(order)
        if order["customer_id"] in coupon["used_by"]:
            return _refused(
                f"Customer {order['customer_id']} has already used {code}: choose another coupon."
            )
        if self.today > coupon["valid_until"]:
            return _refused(f"Coupon {code} expired on {coupon['valid_until']}: choose another coupon.")
        value = self._eligible_value(order["items"], coupon)
        if value < coupon["minimum"]:
            kind = f"{coupon['category']} products" if coupon["category"] else "products"
            return _refused(f"Coupon {code} needs {kind} worth {coupon['minimum']}, the order has {value}.")
        self._release_coupon(order)
        order["coupon_code"] = code
        coupon["used_by"].append(order["customer_id"])
        self._reprice(order)
        return {"success": True, "order": order}

    def change_address(self, order_id: str, address_label: str) -> dict[str, Any]:
        """Send a placed order to another saved address of its customer.

        Args:
            order_id (str): The order's id.
            address_label (str): Label of the customer's saved address.

        Returns:
            dict: success and order, or an error.
        """
        order = self.orders.get(order_id)
        if order is None:
            return _unknown_order(order_id)
        if order["status"] != "placed":
            return _not_changeable(order)
        customer = self.customers[order["customer_id"]]
        if address_label not in customer["addresses"]:
            return _unknown_address(customer, address_label)
        order["address"] = customer["addresses"][address_label]
        return {"success": True, "order": order}

    def cancel_order(self, order_id: str) -> dict[str, Any]:
        """Cancel a placed or packed order; a packed one is refunded.

        Args:
            order_id (str): The order's id.

        Returns:
            dict: success, order and refund (or None), or an error.
        """
        order = self.orders.get(order_id)
        if order is None:
            return _unknown_order(order_id)
        if order["status"] not in ("placed", "packed"):
            return _refused(
                f"Order {order_id} is {order['status']}: only placed or packed orders can be cancelled; "
                "delivered products can be returned with open_return."
            )
        refund = None
        if order["status"] == "packed":
            refund = self._new_refund(order_id, None, order["total"], "original_payment")
        for product_id, item in order["items"].items():
            self.products[product_id]["stock"] += item["quantity"]
        self._release_coupon(order)
        order["status"] = "cancelled"
        return {"success": True, "order": order, "refund": refund}

    def open_return(
        self, order_id: str, product_id: str, quantity: int, reason: ReturnReason
    ) -> dict[str, Any]:
        """Announce the return of a delivered product.

        Args:
            order_id (str): The order's id.
            product_id (str): The product's id.
            quantity (int): Number of pieces to return.
            reason (str): defective, wrong_item or changed_mind.

        Returns:
            dict: success and return, or an error.
        """
        order = self.orders.get(order_id)
        if order is None:
            return _unknown_order(order_id)
        if product_id not in order["items"]:
            return _refused(f"Order {order_id} has no {product_id}: its products are {list(order['items'])}.")
        if reason not in RETURN_REASONS:
            return _refused(f"Unknown reason {reason!r}: use one of {list(RETURN_REASONS)}.")
        if order["delivered_on"] is None:
            return _refused(
                f"Order {order_id} is {order['status']}: only delivered products can be returned."
            )
        days = RETURN_DAYS[self.customers[order["customer_id"]]["tier"]]
        if _days_between(order["delivered_on"], self.today) > days:
            return _refused(
                f"Order {order_id} was delivered on {order['delivered_on']}, more than {days} days ago."
            )
        if self.products[product_id]["final_sale"] and reason == "changed_mind":
            return _refused(
                f"{product_id} is a final-sale product: it can only be returned as defective or wrong_item."
            )
        left = order["items"][product_id]["quantity"] - self._returned(order_id, product_id)
        if not _is_count(quantity) or not 1 <= quantity <= left:
            return _refused(f"quantity must be a whole number from 1 to {left}, the pieces not returned yet.")
        record: Return = {
            "return_id": self._new_id("return", "R"),
            "order_id": order_id,
            "product_id": product_id,
            "quantity": quantity,
            "reason": reason,
            "status": "requested",
            "opened_on": self.today,
        }
        self.returns[record["return_id"]] = record
        return {"success": True, "return": record}

    def receive_return(self, return_id: str) -> dict[str, Any]:
        """Record that the warehouse has received a requested return.

        Args:
            return_id (str): The return's id.

        Returns:
            dict: success and return, or an error.
        """
        record = self.returns.get(return_id)
        if record is None:
            return _unknown_return(return_id)
        if record["status"] != "requested":
            return _refused(f"Return {return_id} is {record['status']}: it was received before.")
        if record["reason"] != "defective":
            self.products[record["product_id"]]["stock"] += record["quantity"]
        record["status"] = "received"
        return {"success": True, "return": record}

    def issue_refund(self, return_id: str, method: RefundMethod) -> dict[str, Any]:
        """Refund a received return.

        Args:
            return_id (str): The return's id.
            method (str): original_payment or store_credit.

        Returns:
            dict: success and refund, or an error.
        """
        record = self.returns.get(return_id)
        if record is None:
            return _unknown_return(return_id)
        if method not in REFUND_METHODS:
            return _refused(f"Unknown method {method!r}: use one of {list(REFUND_METHODS)}.")
        if record["status"] != "received":
            return _not_settleable(record)
        amount = self._refund_amount(record, method)
        if amount > self.refund_limit:
            return _refused(
                f"A refund of {amount} is above the desk's limit of {self.refund_limit}: use escalate_order on "
                f"{record['order_id']} with topic refund_limit."
            )
        refund = self._new_refund(record["order_id"], return_id, amount, method)
        if method == "store_credit":
            self._add_credit(record["order_id"], amount)
        record["status"] = "refunded"
        return {"success": True, "refund": refund}

    def send_replacement(self, return_id: str) -> dict[str, Any]:
        """Send the same product again, free of charge, for a received defective or wrong_item return.

        Args:
            return_id (str): The return's id.

        Returns:
            dict: success and the replacement's order, or an error.
        """
        record = self.returns.get(return_id)
        if record is None:
            return _unknown_return(return_id)
        if record["status"] != "received":
            return _not_settleable(record)
        if record["reason"] == "changed_mind":
            return _refused(f"Return {return_id} is a changed_mind return: use issue_refund instead.")
        product = self.products[record["product_id"]]
        if product["stock"] < record["quantity"]:
            return _refused(
                f"Only {product['stock']} of {product['product_id']} in stock: use issue_refund instead."
            )
        original = self.orders[record["order_id"]]
        order = self._new_order(original["customer_id"], original["address"])
        product["stock"] -= record["quantity"]
        order["items"][record["product_id"]] = {"quantity": record["quantity"], "unit_price": 0.0}
        record["status"] = "replaced"
        return {"success": True, "order": order}

    def grant_goodwill(self, order_id: str, amount: float) -> dict[str, Any]:
        """Give a customer store credit as an apology for trouble with an order.

        Args:
            order_id (str): The order's id.
            amount (float): The credit in euros, at most 10 % of the order's total.

        Returns:
            dict: success and the customer's store_credit, or an error.
        """
        order = self.orders.get(order_id)
        if order is None:
            return _unknown_order(order_id)
        if order["status"] not in ("shipped", "delivered"):
            return _refused(
                f"Order {order_id} is {order['status']}: goodwill is for shipped or delivered orders."
            )
        if order["goodwill"]:
            return _refused(
                f"Order {order_id} has already been given goodwill credit of {order['goodwill']}."
            )
        most = round(order["total"] * GOODWILL_SHARE, 2)
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0.01 <= amount <= most:
            return _refused(f"amount must be a number from 0.01 to {most}, 10 % of the order's total.")
        order["goodwill"] = round(float(amount), 2)
        return {"success": True, "store_credit": self._add_credit(order_id, order["goodwill"])}

    def escalate_order(self, order_id: str, topic: EscalationTopic) -> dict[str, Any]:
        """Hand an order to a supervisor.

        Args:
            order_id (str): The order's id.
            topic (str): refund_limit, lost_parcel or complaint.

        Returns:
            dict: success and escalation, or an error.
        """
        order = self.orders.get(order_id)
        if order is None:
            return _unknown_order(order_id)
        if topic not in ESCALATION_TOPICS:
            return _refused(f"Unknown topic {topic!r}: use one of {list(ESCALATION_TOPICS)}.")
        if any(escalation["order_id"] == order_id for escalation in self.escalations.values()):
            return _refused(f"Order {order_id} has already been escalated.")
        if topic == "lost_parcel" and not self._is_lost(order):
            return _refused(
                f"Order {order_id} is {order['status']} (shipped on {order['shipped_on']}): a parcel is lost when it "
                f"was shipped more than {LOST_AFTER_DAYS} days ago and has not been delivered."
            )
        if topic == "refund_limit" and not self._awaits_large_refund(order_id):
            return _refused(
                f"Order {order_id} has no received return above the limit of {self.refund_limit}."
            )
        escalation: Escalation = {
            "escalation_id": self._new_id("escalation", "E"),
            "order_id": order_id,
            "topic": topic,
            "opened_on": self.today,
        }
        self.escalations[escalation["escalation_id"]] = escalation
        return {"success": True, "escalation": escalation}

    def _new_id(self, kind: str, prefix: str) -> str:
        self.counters[kind] += 1
        return f"{prefix}-{self.counters[kind]}"

    def _new_order(self, customer_id: str, address: str) -> Order:
        order: Order = {
            "order_id": self._new_id("order", "O"),
            "customer_id": customer_id,
            "status": "placed",
            "placed_on": self.today,
            "shipped_on": None,
            "delivered_on": None,
            "address": address,
            "items": {},
            "coupon_code": None,
            "discount": 0.0,
            "shipping_fee": 0.0,
            "total": 0.0,
            "goodwill": 0.0,
        }
        self.orders[order["order_id"]] = order
        return order

    def _new_refund(
        self, order_id: str, return_id: str | None, amount: float, method: RefundMethod
    ) -> Refund:
        refund: Refund = {
            "refund_id": self._new_id("refund", "F"),
            "order_id": order_id,
            "return_id": return_id,
            "amount": amount,
            "method": method,
            "issued_on": self.today,
        }
        self.refunds[refund["refund_id"]] = refund
        return refund

    def _quantity_problem(self, product_id: str, quantity: int, already: int, least: int) -> str | None:
        """Why an order cannot hold this many pieces of a product, or None if it can."""
        product = self.products.get(product_id)
        if product is None:
            return f"No product {product_id!r}: use search_products to find its id."
        if not _is_count(quantity) or not least <= quantity <= MAX_QUANTITY:
            return f"quantity must be a whole number from {least} to {MAX_QUANTITY}, not {quantity!r}."
        if quantity - already > product["stock"]:
            return f"Only {product['stock']} more of {product_id} in stock: order fewer, or another product."
        return None

    def _item(self, order: Order, product_id: str, quantity: int) -> OrderItem:
        line = order["items"].get(product_id)
        price = line["unit_price"] if line else self.products[product_id]["price"]
        return {"quantity": quantity, "unit_price": price}

    def _put_item(self, order: Order, product_id: str, quantity: int) -> None:
        already = order["items"][product_id]["quantity"] if product_id in order["items"] else 0
        self.products[product_id]["stock"] -= quantity - already
        if quantity:
            order["items"][product_id] = self._item(order, product_id, quantity)
        else:
            del order["items"][product_id]

    def _eligible_value(self, items: dict[str, OrderItem], coupon: Coupon) -> float:
        """What the products that a coupon holds for cost before discount."""
        return _value(
            {
                product_id: item
                for product_id, item in items.items()
                if coupon["category"] in ("", self.products[product_id]["category"])
            }
        )

    def _reprice(self, order: Order) -> None:
        discount = 0.0
        if order["coupon_code"]:
            coupon = self.coupons[order["coupon_code"]]
            discount = round(self._eligible_value(order["items"], coupon) * coupon["percent_off"] / 100, 2)
        goods = round(_value(order["items"]) - discount, 2)
        plus = self.customers[order["customer_id"]]["tier"] == "plus"
        order["discount"] = discount
        order["shipping_fee"] = 0.0 if plus or goods >= FREE_SHIPPING_FROM else SHIPPING_FEE
        order["total"] = round(goods + order["shipping_fee"], 2)

    def _release_coupon(self, order: Order) -> None:
        if order["coupon_code"]:
            self.coupons[order["coupon_code"]]["used_by"].remove(order["customer_id"])
            order["coupon_code"] = None

    def _returned(self, order_id: str, product_id: str) -> int:
        return sum(
            record["quantity"]
            for record in self.returns.values()
            if record["order_id"] == order_id and record["product_id"] == product_id
        )

    def _refund_amount(self, record: Return, method: RefundMethod) -> float:
        order = self.orders[record["order_id"]]
        price = record["quantity"] * order["items"][record["product_id"]]["unit_price"]
        value = _value(order["items"])
        paid = price * (1 - order["discount"] / value) if value else 0.0
        plus = self.customers[order["customer_id"]]["tier"] == "plus"
        free = record["reason"] != "changed_mind" or plus or method == "store_credit"
        return round(max(paid - (0.0 if free else RETURN_FEE), 0.0), 2)

    def _awaits_large_refund(self, order_id: str) -> bool:
        return any(
            record["order_id"] == order_id
            and record["status"] == "received"
            and self._refund_amount(record, "store_credit") > self.refund_limit
            for record in self.returns.values()
        )

    def _is_lost(self, order: Order) -> bool:
        return (
            order["status"] == "shipped"
            and order["shipped_on"] is not None
            and _days_between(order["shipped_on"], self.today) > LOST_AFTER_DAYS
        )

    def _add_credit(self, order_id: str, amount: float) -> float:
        customer = self.customers[self.orders[order_id]["customer_id"]]
        customer["store_credit"] = round(customer["store_credit"] + amount, 2)
        return customer["store_credit"]


def _value(items: dict[str, OrderItem]) -> float:
    return round(sum(item["quantity"] * item["unit_price"] for item in items.values()), 2)


def _days_between(earlier: str, later: str) -> int:
    return (date.fromisoformat(later) - date.fromisoformat(earlier)).days


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refused(error: str) -> dict[str, Any]:
    return {"success": False, "error": error}


def _unknown_customer(customer_id: str) -> dict[str, Any]:
    return _refused(f"No customer {customer_id!r}: use find_customer to get the id.")


def _unknown_order(order_id: str) -> dict[str, Any]:
    return _refused(f"No order {order_id!r}: use list_orders to see a customer's orders.")


def _unknown_return(return_id: str) -> dict[str, Any]:
    return _refused(f"No return {return_id!r}: use get_order to see an order's returns.")


def _unknown_address(customer: Customer, label: str) -> dict[str, Any]:
    return _refused(
        f"Customer {customer['customer_id']} has no address {label!r}, only {list(customer['addresses'])}: "
        "use one of these, or add_address first."
    )


def _not_changeable(order: Order) -> dict[str, Any]:
    return _refused(f"Order {order['order_id']} is {order['status']}: only placed orders can be changed.")


def _not_settleable(record: Return) -> dict[str, Any]:
    if record["status"] == "requested":
        return _refused(f"Return {record['return_id']} has not arrived: use receive_return once it has.")
    return _refused(f"Return {record['return_id']} has already been {record['status']}.")
