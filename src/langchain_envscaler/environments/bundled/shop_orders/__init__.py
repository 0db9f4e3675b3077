"""The customer service desk of an online shop: orders, coupons, returns, refunds, stock and addresses."""
